#include "fullbore/base/file_lines.h"

#include <fmt/format.h>

namespace fullbore {

Result<FileLines> FileLines::open(const std::string& path, FileSystem& files) {
  Result<InputFile> file = InputFile::open(path, files);
  if (!file.ok()) return Failure{file.error()};
  return FileLines(std::move(file).value());
}

Result<bool> FileLines::next() {
  constexpr size_t kPieceBytes = size_t{1} << 16;
  size_t searched = begin_;
  for (;;) {
    const size_t end = buffer_.find('\n', searched);
    if (end != std::string::npos) {
      line_ = std::string_view(buffer_).substr(begin_, end - begin_);
      begin_ = end + 1;
      ++number_;
      is_ended_ = true;
      return true;
    }
    if (buffer_.size() - begin_ > kMostBytes)
      return Failure{
          fmt::format("{}:{}: the line is longer than {} bytes", path(), number_ + 1, kMostBytes)};
    buffer_.erase(0, begin_);
    begin_ = 0;
    const size_t held = buffer_.size();
    buffer_.resize(held + kPieceBytes);
    const Result<size_t> count = file_.read(offset_, buffer_.data() + held, kPieceBytes);
    if (!count.ok()) return Failure{count.error()};
    buffer_.resize(held + count.value());
    offset_ += count.value();
    searched = held;
    if (count.value() > 0) continue;
    if (buffer_.empty()) return false;
    line_ = buffer_;  // torn: the file does not end with a line's end
    begin_ = buffer_.size();
    ++number_;
    is_ended_ = false;
    return true;
  }
}

}  // namespace fullbore
