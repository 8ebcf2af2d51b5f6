#include "fullbore/base/mapped_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "fullbore/base/files.h"

namespace fullbore {

Result<std::shared_ptr<const MappedFile>> MappedFile::open(const std::string& path) {
  // Without O_NONBLOCK, opening a pipe would wait for its writer.
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return Failure{fmt::format("cannot open {}: {}", path, system_reason())};
  struct stat status {};
  if (::fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(file);
    return Failure{fmt::format("{} is no regular file", path)};
  }
  const auto bytes = static_cast<size_t>(status.st_size);
  void* const memory =
      bytes == 0 ? nullptr : ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file, 0);
  const std::string reason = memory == MAP_FAILED ? system_reason() : "";
  ::close(file);
  if (!reason.empty()) return Failure{fmt::format("cannot map {}: {}", path, reason)};
  std::error_code error;
  const std::filesystem::path whole = std::filesystem::canonical(path, error);
  std::string identity =
      fmt::format("{} {} {} {} {}.{:09}", bytes, status.st_dev, status.st_ino,
                  error ? path : whole.string(), status.st_mtim.tv_sec, status.st_mtim.tv_nsec);
  return std::shared_ptr<const MappedFile>(
      new MappedFile(path, std::move(identity), {static_cast<const std::byte*>(memory), bytes}));
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace fullbore
