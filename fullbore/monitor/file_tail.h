#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "fullbore/base/file_system.h"

namespace fullbore {

/// The lines of a file that another process is writing, as they come. A last line without its end is waited for.
class FileTail {
 public:
  explicit FileTail(std::string path, FileSystem& files = system_files())
      : path_(std::move(path)), files_(&files) {}

  struct News {
    std::vector<std::string> lines;  ///< without their ends
    bool restarted =
        false;  ///< the file is another one, or was cut: these are its lines from the first on
    bool more = false;  ///< there is more to read at once
  };
  /// What has come since the last call, at most a few MiB. A file that is missing, or cannot be read, has nothing new. Lines
  /// longer than 1 MiB are left out.
  News read();
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  FileSystem* files_;
  uint64_t offset_ = 0;  ///< of what was read
  std::string rest_;     ///< of a line that has no end yet
  bool skips_ = false;   ///< that line is too long
};

}  // namespace fullbore
