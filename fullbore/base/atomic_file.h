#pragma once
#include <string>
#include <string_view>

#include "fullbore/base/file_system.h"
#include "fullbore/base/result.h"

namespace fullbore {

/// A file that replaces another at once or not at all: written under a temporary name in the same
/// folder, synced, renamed over the target, and the folder synced. Whoever looks, also after a
/// crash or a power cut, sees the old contents or the new, never a part.
///
/// Temporary files that crashed processes left beside the same target are removed by create().
class AtomicFile {
 public:
  /// The folder must exist. Failure names the path and the system's reason.
  static Result<AtomicFile> create(const std::string& path, FileSystem& files = system_files());
  /// Only that: removes what crashed processes left beside `path`, where nothing may be written there again.
  static void remove_stale(const std::string& path, FileSystem& files = system_files());
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;
  ~AtomicFile();  ///< without commit(): removes the temporary, the target stays as it was

  Status write(std::string_view bytes);
  /// Puts the file in its place. Call once; after a failure of this or of write() only destroy.
  Status commit();

 private:
  AtomicFile(std::string path, std::string temporary, int file, FileSystem& files);
  Failure failure() const;

  std::string path_;
  std::string temporary_;
  int file_;
  FileSystem* files_;
};

}  // namespace fullbore
