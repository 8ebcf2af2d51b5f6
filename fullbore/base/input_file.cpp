#include "fullbore/base/input_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "fullbore/base/files.h"

namespace fullbore {

InputFile::InputFile(std::string path, int file, FileSystem& files)
    : path_(std::move(path)), file_(file), files_(&files) {}

InputFile::InputFile(InputFile&& other) noexcept
    : path_(std::move(other.path_)),
      file_(std::exchange(other.file_, -1)),
      bytes_(other.bytes_),
      files_(other.files_) {}

InputFile& InputFile::operator=(InputFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(file_, other.file_);
  std::swap(bytes_, other.bytes_);
  std::swap(files_, other.files_);
  return *this;
}

InputFile::~InputFile() {
  if (file_ >= 0) files_->close(file_);
}

Result<InputFile> InputFile::open(const std::string& path, FileSystem& files) {
  const int file = files.open(path);
  if (file < 0) return Failure{fmt::format("cannot open {}: {}", path, system_reason())};
  InputFile input(path, file, files);
  FileStatus status;
  if (files.status(file, status) != 0)
    return Failure{fmt::format("cannot open {}: {}", path, system_reason())};
  if (status.is_folder) return Failure{fmt::format("{} is a folder, not a file", path)};
  if (!status.is_file) return Failure{fmt::format("{} is not a regular file", path)};
  input.bytes_ = status.bytes;
  return input;
}

Result<size_t> InputFile::read(uint64_t offset, void* data, size_t bytes) const {
  constexpr size_t kMost = size_t{1} << 30;  // one call reads at most 2 GiB less a page
  size_t done = 0;
  while (done < bytes) {
    const ssize_t count = files_->read(file_, static_cast<char*>(data) + done,
                                       std::min(bytes - done, kMost), offset + done);
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
