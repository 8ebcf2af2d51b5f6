#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fullbore/data/input_bytes.h"

namespace fullbore {

/// Lines of a text file, without their ends (LF or CR LF) and without a byte order mark.
class TextLines {
 public:
  static constexpr size_t kMostBytes = size_t{1} << 25;  ///< of a line

  explicit TextLines(InputBytes bytes);

  /// Moves to the next line; false at the end. Failure: the file, or a line beyond kMostBytes.
  Result<bool> next();
  /// Valid until the next call of next().
  std::string_view line() const { return line_; }
  uint64_t number() const { return number_; }  ///< of line(), from 1
  const std::string& path() const { return bytes_.path(); }

  /// "file:line: " and the message, for the line that is current or another.
  Failure failure(std::string_view message) const { return failure(number_, message); }
  Failure failure(uint64_t line, std::string_view message) const;

 private:
  InputBytes bytes_;
  std::vector<char> buffer_;
  size_t begin_ = 0;
  size_t end_ = 0;
  bool ended_ = false;
  std::string_view line_;
  uint64_t number_ = 0;
};

std::string_view trimmed(std::string_view text);  ///< without blanks and tabs at both ends
/// Takes what comes before the next of blanks and tabs off the text; empty at its end.
std::string_view take_word(std::string_view& text);
bool same_ignoring_case(std::string_view a, std::string_view b);
/// 'text', cut where it is long, without bytes that a terminal would obey.
std::string quote_text(std::string_view text);

/// A finite decimal number that is the whole text.
std::optional<double> parse_number(std::string_view text);
}  // namespace fullbore
