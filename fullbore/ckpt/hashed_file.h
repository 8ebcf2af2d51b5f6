#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "fullbore/base/file_system.h"
#include "fullbore/base/result.h"
#include "fullbore/ckpt/checksum.h"
#include "fullbore/ckpt/manifest.h"

namespace fullbore {

/// A file of a folder that nobody knows of yet, hashed as it is written.
///
/// What is large goes past the page cache: copying gigabytes into pages that nobody will read costs the
/// training loop more processor time than all the rest of a save. It goes straight from the caller's
/// memory where the addresses allow it, that is where (address - offset in the file) is a multiple of
/// kDirectAlignment; by way of a buffer otherwise, as what is small does. Where the file system does not
/// write directly any address will do.
class HashedFile {
 public:
  /// Creates it; a failure to is told by what is called next.
  HashedFile(const std::string& path, FileSystem& files)
      : path_(path), files_(files), file_(files.create(path)) {}
  ~HashedFile();
  HashedFile(const HashedFile&) = delete;
  HashedFile& operator=(const HashedFile&) = delete;

  Status write(std::string_view bytes);
  /// Synced and closed.
  Result<ManifestEntry> finish();

 private:
  struct Free {
    void operator()(char* memory) const { std::free(memory); }
  };

  Failure failure(const char* what) const;
  size_t bytes_to_page() const;
  bool goes_straight(std::string_view bytes) const;
  void collect(std::string_view bytes);
  Status flush();
  Status put(std::string_view bytes);
  Status put_piece(std::string_view bytes);

  std::string path_;
  FileSystem& files_;
  int file_;
  bool asked_ = false;   ///< whether to write directly is known,
  bool direct_ = false;  ///< and this is it
  std::unique_ptr<char, Free> buffer_;
  size_t buffered_ = 0;
  uint64_t bytes_ = 0;  ///< in the file: whole pages, until finish()
  StreamingHash hash_;
};

}  // namespace fullbore
