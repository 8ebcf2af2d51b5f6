#pragma once
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace fullbore {

/// What a name stands for, symbolic links followed.
struct FileStatus {
  bool is_file = false;
  bool is_folder = false;
  uint64_t bytes = 0;  ///< of a file
};

/// The few calls by which files are read and written, so that tests can make any one of them fail,
/// stop the world between two, or keep all of it in memory. Each behaves as the POSIX call it is
/// named after: -1 and errno on failure.
class FileSystem {
 public:
  virtual ~FileSystem() = default;

  /// A new file, opened for writing and locked by this process until closed; EEXIST if it exists.
  virtual int create(const std::string& path) = 0;
  /// Opened for writing at its end, whoever else writes there; created if it is missing. ELOOP: the name is
  /// a symbolic link, which is not followed; EINVAL: no regular file.
  virtual int append(const std::string& path) = 0;
  virtual ssize_t write(int file, const void* data, size_t bytes) = 0;
  /// From now on writes go past the page cache (O_DIRECT), or no more: sizes, offsets and addresses
  /// are then multiples of kDirectAlignment. False, and nothing changes, where that is not possible.
  virtual bool write_directly(int file, bool on) {
    (void)file;
    (void)on;
    return false;
  }
  virtual int truncate(const std::string& path, uint64_t bytes) = 0;  ///< ELOOP: a symbolic link
  virtual int sync(int file) = 0;  ///< fsync: the contents are on the disk when it returns
  virtual int close(int file) = 0;

  /// Opened for reading; does not wait for a writer where the name is a pipe's.
  virtual int open(const std::string& path) = 0;
  virtual int status(int file, FileStatus& status) = 0;
  virtual int status(const std::string& path, FileStatus& status) = 0;
  virtual ssize_t read(int file, void* data, size_t bytes, uint64_t offset) = 0;  ///< pread

  virtual int rename(const std::string& from, const std::string& to) = 0;
  virtual int remove(const std::string& path) = 0;
  virtual int make_folder(const std::string& path) = 0;
  virtual int remove_folder(const std::string& path) = 0;                         ///< an empty one
  virtual int make_link(const std::string& target, const std::string& path) = 0;  ///< symbolic
  /// What a symbolic link says; "" if there is none.
  virtual std::string link_target(const std::string& path) = 0;
  /// fsync of a folder: the names in it are on the disk. 0 where the file system has no such thing.
  virtual int sync_folder(const std::string& path) = 0;

  /// Names in a folder, in no order; when it cannot be read: none, and errno, which is 0 otherwise.
  virtual std::vector<std::string> list(const std::string& folder) = 0;
  /// Removes a file that nobody has created and not yet closed; one that is being written stays.
  virtual void remove_unused(const std::string& path) = 0;
};

/// Enough for every disk.
inline constexpr size_t kDirectAlignment = 4096;

/// The operating system's.
FileSystem& system_files();

}  // namespace fullbore
