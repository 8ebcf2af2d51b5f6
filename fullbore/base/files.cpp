#include "fullbore/base/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "fullbore/base/atomic_file.h"

namespace fullbore {
namespace {

/// Closes on every way out.
class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  ~FileDescriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

Failure failure(const char* what, const std::string& path) {
  return {fmt::format("cannot {} {}: {}", what, path, system_reason())};
}

}  // namespace

std::string system_reason() { return std::generic_category().message(errno); }

Result<std::string> read_file(const std::string& path) {
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return failure("open", path);
  std::string contents;
  char block[1 << 16];
  for (;;) {
    const ssize_t count = ::read(file.get(), block, sizeof block);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return failure("read", path);
    if (count == 0) return contents;
    contents.append(block, static_cast<size_t>(count));
  }
}

Status write_file_atomically(const std::string& path, std::string_view contents,
                             FileSystem& files) {
  Result<AtomicFile> file = AtomicFile::create(path, files);
  if (!file.ok()) return Failure{file.error()};
  if (Status written = file.value().write(contents); !written.ok()) return written;
  return file.value().commit();
}

}  // namespace fullbore
