#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "fullbore/base/file_lines.h"

namespace fullbore {

/// Reads what JsonLines has written, line by line. Every line carries a checksum of its text and its number, so that a
/// changed line, and one that is missing, repeated or foreign, is told. Lines of older versions have none: they are
/// taken where no line before them has one.
class JsonLineReader {
 public:
  /// Failure: as InputFile::open.
  static Result<JsonLineReader> open(const std::string& path, FileSystem& files = system_files());

  /// Moves to the next sound line and passes over the others; false at the end. Failure: the file cannot be read.
  Result<bool> next();
  const nlohmann::ordered_json& record() const { return record_; }  ///< without the checksum
  std::string_view text() const { return text_; }                   ///< the same, as it is written

  /// "path:3: ..." of what is wrong before and at the current line, a sentence each; the first of many.
  const std::vector<std::string>& problems() const { return problems_; }
  int64_t problem_count() const { return problem_count_; }
  bool is_torn() const { return is_torn_; }  ///< the last line has no end: it was being written
  int64_t unchecked() const { return unchecked_; }  ///< sound lines without a checksum
  int64_t line() const { return lines_.number(); }  ///< of the file, from 1
  int64_t lines() const { return last_; }  ///< written up to the current one, lost ones too

 private:
  explicit JsonLineReader(FileLines lines) : lines_(std::move(lines)) {}
  void add_problem(const std::string& what);
  bool take_line();
  bool take_number(int64_t number);

  FileLines lines_;
  nlohmann::ordered_json record_;
  std::string text_;
  std::vector<std::string> problems_;
  int64_t problem_count_ = 0;
  bool is_torn_ = false;
  int64_t unchecked_ = 0;
  int64_t last_ = 0;     ///< number of the last sound line
  int64_t damaged_ = 0;  ///< lines since then
};

}  // namespace fullbore
