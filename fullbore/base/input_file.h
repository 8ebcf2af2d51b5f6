#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "fullbore/base/file_system.h"
#include "fullbore/base/result.h"

namespace fullbore {

/// A regular file open for reading at any offset. Read, not mapped: a file that shrinks or a disk
/// that fails while it is used is then a Failure and not a signal.
class InputFile {
 public:
  /// Failure when it is missing, unreadable, a folder, or no regular file (a pipe cannot be read
  /// twice, and opening one may wait for ever).
  static Result<InputFile> open(const std::string& path, FileSystem& files = system_files());
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&& other) noexcept;
  ~InputFile();

  const std::string& path() const { return path_; }
  uint64_t bytes() const { return bytes_; }  ///< when it was opened

  /// Reads up to `bytes` from `offset`; the count is less than `bytes` only at the file's end.
  Result<size_t> read(uint64_t offset, void* data, size_t bytes) const;
  /// Reads exactly `bytes`; an earlier end is a Failure that names both lengths.
  Status read_exactly(uint64_t offset, void* data, size_t bytes) const;

 private:
  InputFile(std::string path, int file, FileSystem& files);
  std::string path_;
  int file_;
  uint64_t bytes_ = 0;
  FileSystem* files_;
};

}  // namespace fullbore
