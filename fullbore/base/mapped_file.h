#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "fullbore/base/mapped_faults.h"
#include "fullbore/base/result.h"

namespace fullbore {

/// A regular file mapped read-only: its pages are the page cache's, shared by all who map it, and read when they are
/// first looked at. A write to them ends the process. Whoever makes the file shorter while it is mapped ends the
/// process too (SIGBUS; mapped_faults.h tells the file's name): files that are replaced by a new one under the same name
/// are safe.
class MappedFile {
 public:
  /// Failure when it is missing, unreadable or no regular file.
  static Result<std::shared_ptr<const MappedFile>> open(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::string& path() const { return path_; }
  std::span<const std::byte> bytes() const { return bytes_; }
  /// By which a cache knows it again: path, size, device, inode, time of the last change in nanoseconds.
  const std::string& identity() const { return identity_; }

 private:
  MappedFile(std::string path, std::string identity, std::span<const std::byte> bytes)
      : path_(std::move(path)),
        identity_(std::move(identity)),
        bytes_(bytes),
        range_(path_, bytes_) {}
  std::string path_;
  std::string identity_;
  std::span<const std::byte> bytes_;
  MappedRange range_;
};

}  // namespace fullbore
