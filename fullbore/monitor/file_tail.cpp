#include "fullbore/monitor/file_tail.h"

#include <utility>

namespace fullbore {
namespace {
constexpr size_t kMostLineBytes = size_t{1} << 20;
constexpr size_t kMostBytesAtOnce = size_t{4} << 20;
}  // namespace

FileTail::News FileTail::read() {
  News news;
  const int file = files_->open(path_);
  FileStatus status;
  if (file < 0 || files_->status(file, status) != 0 || !status.is_file) {
    if (file >= 0) files_->close(file);
    return news;
  }
  if (status.bytes < offset_) {
    offset_ = 0;
    rest_.clear();
    skips_ = false;
    news.restarted = true;
  }
  std::string block(64 << 10, '\0');
  size_t taken = 0;
  while (taken < kMostBytesAtOnce) {
    const ssize_t count = files_->read(file, block.data(), block.size(), offset_);
    if (count <= 0) break;
    offset_ += static_cast<uint64_t>(count);
    taken += static_cast<size_t>(count);
    std::string_view text(block.data(), static_cast<size_t>(count));
    while (!text.empty()) {
      const size_t end = text.find('\n');
      if (!skips_) rest_ += text.substr(0, end);
      if (rest_.size() > kMostLineBytes) {
        rest_.clear();
        skips_ = true;
      }
      if (end == std::string_view::npos) break;
      if (!std::exchange(skips_, false)) news.lines.push_back(std::exchange(rest_, {}));
      text.remove_prefix(end + 1);
    }
  }
  files_->close(file);
  news.more = taken >= kMostBytesAtOnce;
  return news;
}

}  // namespace fullbore
