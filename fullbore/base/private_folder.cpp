#include "fullbore/base/private_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "fullbore/base/files.h"

namespace fullbore {
namespace {

constexpr mode_t kOthersWrite = S_IWGRP | S_IWOTH;
constexpr mode_t kOthers = S_IRWXG | S_IRWXO;

/// "a//b/" is "a//b": open(2) follows a link whose name ends with a slash.
std::string without_slashes(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

/// 0 or -1 and errno, as mkdir.
int make_private_folders(const std::string& path) {
  if (::mkdir(path.c_str(), S_IRWXU) == 0 || errno == EEXIST) return 0;
  if (errno != ENOENT) return -1;
  const std::string parent = std::filesystem::path(path).parent_path().string();
  if (parent.empty() || parent == path) return -1;
  if (make_private_folders(parent) != 0) return -1;
  return ::mkdir(path.c_str(), S_IRWXU) == 0 || errno == EEXIST ? 0 : -1;
}

int open_folder(const std::string& path) {
  return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

}  // namespace

Descriptor::Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(number_, other.number_);
  return *this;
}
Descriptor::~Descriptor() {
  if (number_ >= 0) ::close(number_);
}

Result<Descriptor> open_private_folder(const std::string& given, Readers readers) {
  const std::string path = without_slashes(given);
  Descriptor folder(open_folder(path));
  if (!folder.ok() && errno == ENOENT) {
    if (make_private_folders(path) != 0)
      return Failure{fmt::format("cannot create the folder {}: {}", path, system_reason())};
    folder = Descriptor(open_folder(path));
  }
  if (!folder.ok()) {
    const std::string reason = system_reason();
    struct stat named {};
    if (::lstat(path.c_str(), &named) == 0 && S_ISLNK(named.st_mode))
      return Failure{fmt::format("{} is a symbolic link, not a folder", path)};
    return Failure{fmt::format("cannot open the folder {}: {}", path, reason)};
  }
  struct stat status {};
  if (::fstat(folder.get(), &status) != 0)
    return Failure{fmt::format("cannot open the folder {}: {}", path, system_reason())};
  if (status.st_uid != ::geteuid())
    return Failure{fmt::format("{} belongs to user {}, not to user {}, who runs this", path,
                               status.st_uid, ::geteuid())};
  if ((status.st_mode & kOthersWrite) != 0)
    return Failure{
        fmt::format("{} has mode {:04o}: others can write to it. chmod 700 keeps them out", path,
                    status.st_mode & 07777)};
  if (readers == Readers::nobody && (status.st_mode & kOthers) != 0 &&
      ::fchmod(folder.get(), S_IRWXU) != 0)
    return Failure{fmt::format("cannot change the mode of {}: {}", path, system_reason())};
  return folder;
}

Result<Descriptor> open_private_file(const Descriptor& folder, const std::string& name,
                                     Readers readers) {
  // Of a pipe, O_NONBLOCK does not wait for a writer.
  Descriptor file(
      ::openat(folder.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file.ok())
    return Failure{errno == ELOOP ? fmt::format("{} is a symbolic link", name)
                                  : fmt::format("cannot open {}: {}", name, system_reason())};
  struct stat status {};
  if (::fstat(file.get(), &status) != 0)
    return Failure{fmt::format("cannot open {}: {}", name, system_reason())};
  errno = 0;
  if (!S_ISREG(status.st_mode)) return Failure{fmt::format("{} is no regular file", name)};
  if (status.st_uid != ::geteuid())
    return Failure{fmt::format("{} belongs to user {}, not to user {}, who runs this", name,
                               status.st_uid, ::geteuid())};
  if ((status.st_mode & (readers == Readers::nobody ? kOthers : kOthersWrite)) != 0)
    return Failure{
        fmt::format("{} has mode {:04o}: it is open to others", name, status.st_mode & 07777)};
  return file;
}

Result<std::string> read_all(const Descriptor& file, size_t most) {
  std::string contents;
  char block[1 << 16];
  for (;;) {
    const ssize_t count = ::read(file.get(), block, sizeof block);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Failure{system_reason()};
    if (count == 0) return contents;
    contents.append(block, static_cast<size_t>(count));
    if (contents.size() > most) return Failure{fmt::format("more than {} bytes", most)};
  }
}

Status write_all(const Descriptor& file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written == 0) errno = ENOSPC;  // or this would never end
    if (written <= 0) return Failure{system_reason()};
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return success();
}

}  // namespace fullbore
