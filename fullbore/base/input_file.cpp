#include "fullbore/base/input_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "fullbore/base/files.h"

namespace fullbore {

InputFile::InputFile(std::string path, int file, uint64_t bytes)
    : path_(std::move(path)), file_(file), bytes_(bytes) {}

InputFile::InputFile(InputFile&& other) noexcept
    : path_(std::move(other.path_)), file_(std::exchange(other.file_, -1)), bytes_(other.bytes_) {}

InputFile& InputFile::operator=(InputFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(file_, other.file_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

InputFile::~InputFile() {
  if (file_ >= 0) ::close(file_);
}

Result<InputFile> InputFile::open(const std::string& path) {
  // Not blocking: opening a pipe would wait for a writer. No effect on regular files.
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return Failure{fmt::format("cannot open {}: {}", path, system_reason())};
  InputFile input(path, file, 0);
  struct stat status {};
  if (::fstat(file, &status) != 0)
    return Failure{fmt::format("cannot open {}: {}", path, system_reason())};
  if (S_ISDIR(status.st_mode)) return Failure{fmt::format("{} is a folder, not a file", path)};
  if (!S_ISREG(status.st_mode)) return Failure{fmt::format("{} is not a regular file", path)};
  input.bytes_ = static_cast<uint64_t>(status.st_size);
  return input;
}

Result<size_t> InputFile::read(uint64_t offset, void* data, size_t bytes) const {
  constexpr size_t kMost = size_t{1} << 30;  // one call reads at most 2 GiB less a page
  size_t done = 0;
  while (done < bytes) {
    const ssize_t count = ::pread(file_, static_cast<char*>(data) + done,
                                  std::min(bytes - done, kMost), static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0)
      return Failure{
          fmt::format("cannot read {} at byte {}: {}", path_, offset + done, system_reason())};
    if (count == 0) break;
    done += static_cast<size_t>(count);
  }
  return done;
}

Status InputFile::read_exactly(uint64_t offset, void* data, size_t bytes) const {
  const Result<size_t> count = read(offset, data, bytes);
  if (!count.ok()) return Failure{count.error()};
  if (count.value() < bytes)
    return Failure{fmt::format("{} ends at byte {}; {} bytes were expected from byte {} on", path_,
                               offset + count.value(), bytes, offset)};
  return success();
}

}  // namespace fullbore
