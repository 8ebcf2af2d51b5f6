#pragma once
#include <string>
#include <string_view>

#include "fullbore/base/input_file.h"

namespace fullbore {

/// The lines of a text file one after the other, in memory of one line, without their ends (LF).
class FileLines {
 public:
  static constexpr size_t kMostBytes = size_t{1} << 20;  ///< of a line

  /// Failure: as InputFile::open.
  static Result<FileLines> open(const std::string& path, FileSystem& files = system_files());

  /// Moves to the next line; false at the end. Failure: the file cannot be read, or a line is longer than kMostBytes.
  Result<bool> next();
  std::string_view line() const { return line_; }  ///< valid until next()
  int64_t number() const { return number_; }       ///< of line(), from 1
  bool is_ended() const { return is_ended_; }      ///< line() has its LF; false of a torn last one
  const std::string& path() const { return file_.path(); }

 private:
  explicit FileLines(InputFile file) : file_(std::move(file)) {}
  InputFile file_;
  uint64_t offset_ = 0;  ///< of what comes behind buffer_
  std::string buffer_;
  size_t begin_ = 0;
  std::string_view line_;
  int64_t number_ = 0;
  bool is_ended_ = false;
};

}  // namespace fullbore
