#pragma once
#include <string>
#include <string_view>

namespace fullbore::chess {

/// Lines of standard input, or of another open file, in memory of one line; a pipe or a terminal will do.
class InputLines {
 public:
  static constexpr size_t kMostBytes = size_t{1} << 20;  ///< of a line

  explicit InputLines(int descriptor = 0) : descriptor_(descriptor) {}

  /// Moves to the next line, without its end (LF or CRLF); false at the end. DataError with the line's number if it
  /// is longer than kMostBytes or cannot be read.
  bool next();
  std::string_view line() const { return line_; }  ///< valid until next()
  int64_t number() const { return number_; }       ///< of line(), from 1

 private:
  int descriptor_;
  std::string buffer_;
  size_t begin_ = 0;
  std::string_view line_;
  int64_t number_ = 0;
  bool at_end_ = false;
};

}  // namespace fullbore::chess
