#include "fullbore/base/file_system.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

namespace fullbore {
namespace {

class SystemFiles : public FileSystem {
 public:
  int create(const std::string& path) override {
    const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file < 0) return -1;
    // The lock, not the process id in its name, tells a file being written from one left behind by
    // a crash: the kernel drops it with the process, and ids repeat from container to container.
    struct stat status {};
    if (::flock(file, LOCK_EX | LOCK_NB) != 0 || ::fstat(file, &status) != 0 ||
        status.st_nlink == 0) {  // somebody tidied it away before we had locked it
      ::close(file);
      errno = EEXIST;
      return -1;
    }
    return file;
  }

  ssize_t write(int file, const void* data, size_t bytes) override {
    return ::write(file, data, bytes);
  }
  int sync(int file) override { return ::fsync(file); }
  int close(int file) override { return ::close(file); }
  int rename(const std::string& from, const std::string& to) override {
    return ::rename(from.c_str(), to.c_str());
  }
  int remove(const std::string& path) override { return ::unlink(path.c_str()); }

  int sync_folder(const std::string& path) override {
    const int folder = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) return -1;
    int status = ::fsync(folder);
    if (status != 0 && (errno == EINVAL || errno == ENOTSUP)) status = 0;
    const int reason = errno;
    ::close(folder);
    errno = reason;
    return status;
  }

  std::vector<std::string> list(const std::string& folder) override {
    std::vector<std::string> names;
    std::error_code error;
    std::filesystem::directory_iterator entry(folder, error);
    for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error))
      names.push_back(entry->path().filename().string());
    return names;
  }

  void remove_unused(const std::string& path) override {
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0) return;
    // Removed while the lock is held: create() sees either the lock or, after it, no name.
    if (::flock(file, LOCK_EX | LOCK_NB) == 0) ::unlink(path.c_str());
    ::close(file);
  }
};

}  // namespace

FileSystem& system_files() {
  static SystemFiles files;
  return files;
}

}  // namespace fullbore
