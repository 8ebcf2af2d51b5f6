#include "fullbore/base/file_system.h"

#include "fullbore/base/interrupted_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <memory>
#include <string_view>

namespace fullbore {
namespace {

FileStatus to_status(const struct stat& found) {
  return {S_ISREG(found.st_mode), S_ISDIR(found.st_mode), static_cast<uint64_t>(found.st_size)};
}

bool is_regular(int file) {
  struct stat found {};
  return file < 0 || (::fstat(file, &found) == 0 && S_ISREG(found.st_mode));
}

/// -1 and this errno.
int close_as(int file, int reason) {
  ::close(file);
  errno = reason;
  return -1;
}

/// A call, made again as long as signals interrupt it: no caller needs to. (close() is not made again: on Linux the
/// descriptor is gone whatever it returns.)
class SystemFiles : public FileSystem {
  // Before its first use: its type is deduced.
  bool interrupted(const char* call) const { return interrupts_ != nullptr && interrupts_(call); }

  template <class Call>
  auto retried(const char* name, const Call& call) const {
    for (;;) {
      decltype(call()) result = -1;
      if (interrupted(name))
        errno = EINTR;
      else
        result = call();
      if (result >= 0 || errno != EINTR) return result;
    }
  }

 public:
  explicit SystemFiles(InterruptsCall interrupts = nullptr) : interrupts_(interrupts) {}

  int create(const std::string& path) override {
    const int file = retried("open", [&] {
      return ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    });
    if (file < 0) return -1;
    // The lock, not the process id in its name, tells a file being written from one left behind by
    // a crash: the kernel drops it with the process, and ids repeat from container to container.
    struct stat status {};
    if (retried("flock", [&] { return ::flock(file, LOCK_EX | LOCK_NB); }) != 0 ||
        ::fstat(file, &status) != 0 ||
        status.st_nlink == 0) {  // somebody tidied it away before we had locked it
      ::close(file);
      errno = EEXIST;
      return -1;
    }
    return file;
  }

  int append(const std::string& path) override {
    // Of a pipe without a reader, O_NONBLOCK does not wait for one.
    const int file = retried("open", [&] {
      return ::open(path.c_str(),
                    O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
    });
    return is_regular(file) ? file : close_as(file, EINVAL);
  }
  ssize_t write(int file, const void* data, size_t bytes) override {
    return retried("write", [&] { return ::write(file, data, bytes); });
  }
  bool write_directly(int file, bool on) override {
    const int flags = ::fcntl(file, F_GETFL);
    return flags >= 0 && ::fcntl(file, F_SETFL, on ? flags | O_DIRECT : flags & ~O_DIRECT) == 0;
  }
  int truncate(const std::string& path, uint64_t bytes) override {
    const int file = retried("open", [&] {
      return ::open(path.c_str(), O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    });
    if (file < 0) return -1;
    const int status =
        retried("truncate", [&] { return ::ftruncate(file, static_cast<off_t>(bytes)); });
    return status == 0 ? ::close(file) : close_as(file, errno);
  }
  int sync(int file) override {
    return retried("fsync", [&] { return ::fsync(file); });
  }
  int close(int file) override {
    const int status = interrupted("close") ? (::close(file), errno = EINTR, -1) : ::close(file);
    return status != 0 && errno == EINTR ? 0 : status;
  }

  int open(const std::string& path) override {
    return retried("open", [&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); });
  }
  int status(int file, FileStatus& status) override {
    struct stat found {};
    if (retried("fstat", [&] { return ::fstat(file, &found); }) != 0) return -1;
    status = to_status(found);
    return 0;
  }
  int status(const std::string& path, FileStatus& status) override {
    struct stat found {};
    if (retried("stat", [&] { return ::stat(path.c_str(), &found); }) != 0) return -1;
    status = to_status(found);
    return 0;
  }
  ssize_t read(int file, void* data, size_t bytes, uint64_t offset) override {
    return retried("pread", [&] { return ::pread(file, data, bytes, static_cast<off_t>(offset)); });
  }

  int rename(const std::string& from, const std::string& to) override {
    return retried("rename", [&] { return ::rename(from.c_str(), to.c_str()); });
  }
  int remove(const std::string& path) override {
    return retried("unlink", [&] { return ::unlink(path.c_str()); });
  }
  int make_folder(const std::string& path) override {
    return retried("mkdir", [&] { return ::mkdir(path.c_str(), 0777); });
  }
  int remove_folder(const std::string& path) override {
    return retried("rmdir", [&] { return ::rmdir(path.c_str()); });
  }
  int make_link(const std::string& target, const std::string& path) override {
    return retried("symlink", [&] { return ::symlink(target.c_str(), path.c_str()); });
  }
  std::string link_target(const std::string& path) override {
    char target[PATH_MAX];
    const ssize_t bytes =
        retried("readlink", [&] { return ::readlink(path.c_str(), target, sizeof target); });
    return bytes < 0 ? "" : std::string(target, static_cast<size_t>(bytes));
  }

  int sync_folder(const std::string& path) override {
    const int folder =
        retried("open", [&] { return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
    if (folder < 0) return -1;
    int status = retried("fsync", [&] { return ::fsync(folder); });
    if (status != 0 && (errno == EINVAL || errno == ENOTSUP)) status = 0;
    const int reason = errno;
    ::close(folder);
    errno = reason;
    return status;
  }

  std::vector<std::string> list(const std::string& folder) override {
    // Not std::filesystem's iterator: it promises to throw nothing, and ends the process when
    // memory runs out.
    std::vector<std::string> names;
    const std::unique_ptr<DIR, int (*)(DIR*)> entries(::opendir(folder.c_str()), ::closedir);
    if (!entries) return names;
    for (;;) {
      errno = 0;
      const dirent* const entry = ::readdir(entries.get());
      if (entry == nullptr) break;
      const std::string_view name = entry->d_name;
      if (name != "." && name != "..") names.emplace_back(name);
    }
    if (errno != 0) names.clear();  // and closedir() leaves errno alone when it succeeds
    return names;
  }

  void remove_unused(const std::string& path) override {
    const int file = open(path);
    if (file < 0) return;
    // Removed while the lock is held: create() sees either the lock or, after it, no name.
    if (retried("flock", [&] { return ::flock(file, LOCK_EX | LOCK_NB); }) == 0) remove(path);
    ::close(file);
  }

 private:
  const InterruptsCall interrupts_;
};

}  // namespace

FileSystem& system_files() {
  static SystemFiles files;
  return files;
}

std::unique_ptr<FileSystem> interrupted_files(InterruptsCall interrupts) {
  return std::make_unique<SystemFiles>(interrupts);
}

}  // namespace fullbore
