#pragma once
#include <sys/types.h>

#include <cstddef>
#include <string>
#include <vector>

namespace fullbore {

/// The few calls by which files are written, so that tests can make any one of them fail, or stop
/// the world between two. Each behaves as the POSIX call it is named after: -1 and errno on failure.
class FileSystem {
 public:
  virtual ~FileSystem() = default;

  /// A new file, opened for writing and locked by this process until closed; EEXIST if it exists.
  virtual int create(const std::string& path) = 0;
  virtual ssize_t write(int file, const void* data, size_t bytes) = 0;
  virtual int sync(int file) = 0;  ///< fsync: the contents are on the disk when it returns
  virtual int close(int file) = 0;
  virtual int rename(const std::string& from, const std::string& to) = 0;
  virtual int remove(const std::string& path) = 0;
  /// fsync of a folder: the names in it are on the disk. 0 where the file system has no such thing.
  virtual int sync_folder(const std::string& path) = 0;

  /// Names in a folder, in no order; empty when it cannot be read.
  virtual std::vector<std::string> list(const std::string& folder) = 0;
  /// Removes a file that nobody has created and not yet closed; one that is being written stays.
  virtual void remove_unused(const std::string& path) = 0;
};

/// The operating system's.
FileSystem& system_files();

}  // namespace fullbore
