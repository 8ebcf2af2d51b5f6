#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fullbore/data/text_lines.h"

namespace fullbore::peptide {

/// Rows of a text whose cells are separated by one character. A cell in quotes, with or without blanks around them, may
/// have separators, line ends and, doubled, quotes (RFC 4180, section 2).
class TableRows {
 public:
  static constexpr size_t kMostCells = 10000;

  TableRows(TextLines lines, char separator) : lines_(std::move(lines)), separator_(separator) {}

  /// What rows are made of; whoever moves it on decides which lines are rows.
  TextLines& lines() { return lines_; }
  /// The current line as a row, and those that quotes join to it. Failure: the file, a quote that does not
  /// end or is followed by text, a row too long.
  Status split();
  std::span<const std::string> cells() const { return {cells_.data(), count_}; }
  uint64_t line() const { return line_; }  ///< where the row begins
  Failure failure(std::string_view message) const { return lines_.failure(line_, message); }
  void set_separator(char separator) { separator_ = separator; }

 private:
  enum class Quotes : uint8_t { none, inside, closed };
  Status take(char c, Quotes& quotes);
  Status begin_cell();

  TextLines lines_;
  char separator_;
  uint64_t line_ = 0;
  std::vector<std::string> cells_;  ///< kept from row to row for their memory
  size_t count_ = 0;
};

}  // namespace fullbore::peptide
