#pragma once
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace fullbore {

/// What can be made again, on disk, by all that it was made from. Any number of processes and threads may
/// share the folder: entries are written beside and renamed, and whatever is torn, foreign or of another
/// key counts as absent, and is written anew by whoever misses it. A folder that cannot be written to is
/// no error, only slow.
class ContentCache {
 public:
  /// The folder is created when the first entry is put; "": nothing is kept. Beyond `most_bytes` the
  /// entries that have not been put or found for longest go.
  explicit ContentCache(std::string folder, uint64_t most_bytes = uint64_t{256} << 20)
      : folder_(std::move(folder)), most_bytes_(most_bytes) {}

  std::optional<std::string> find(std::string_view key) const;
  void put(std::string_view key, std::string_view content) const;
  std::string path(std::string_view key) const;

 private:
  void make_room() const;

  std::string folder_;
  uint64_t most_bytes_;
  /// That may be put before the folder is looked through again.
  mutable std::atomic<int64_t> unseen_bytes_{0};
};

}  // namespace fullbore
