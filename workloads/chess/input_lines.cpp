#include "workloads/chess/input_lines.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "fullbore/base/error.h"

namespace fullbore::chess {

bool InputLines::next() {
  size_t searched = begin_;
  size_t end = buffer_.find('\n', searched);
  while (end == std::string::npos && !at_end_) {
    buffer_.erase(0, begin_);
    begin_ = 0;
    if (buffer_.size() > kMostBytes)
      throw DataError(
          fmt::format("standard input: line {} is longer than {} bytes", number_ + 1, kMostBytes));
    searched = buffer_.size();
    std::array<char, 65536> block;
    const ssize_t count = ::read(descriptor_, block.data(), block.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0)
      throw DataError(
          fmt::format("standard input: cannot read line {}: {}", number_ + 1, strerror(errno)));
    at_end_ = count == 0;
    buffer_.append(block.data(), static_cast<size_t>(count));
    end = buffer_.find('\n', searched);
  }
  if (end == std::string::npos && begin_ == buffer_.size()) return false;
  const size_t stop = end == std::string::npos ? buffer_.size() : end;
  line_ = std::string_view(buffer_).substr(begin_, stop - begin_);
  if (line_.ends_with('\r')) line_.remove_suffix(1);
  begin_ = end == std::string::npos ? stop : end + 1;
  ++number_;
  return true;
}

}  // namespace fullbore::chess
