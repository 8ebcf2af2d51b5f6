#pragma once
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "fullbore/base/cache_key.h"

namespace fullbore {

/// What can be made again, on disk, by all that it was made from. Any number of processes and threads may
/// share the folder: entries are written beside and renamed, and whatever is torn, foreign or of another
/// key counts as absent, and is written anew by whoever misses it. A folder that cannot be written to is
/// no error, only slow.
///
/// What is found may be run as code. So an entry ends with a SipHash of key and content that only the holder
/// of `secret` can make, the folder is the effective user's own (private_folder.h), and so is the entry:
/// looked at by every call, and otherwise nothing is found or put.
class ContentCache {
 public:
  /// The folder is created when the first entry is put; "": nothing is kept. Beyond `most_bytes` the
  /// entries that have not been put or found for longest go.
  explicit ContentCache(std::string folder, uint64_t most_bytes = uint64_t{256} << 20,
                        const SipKey& secret = cache_key().key)
      : folder_(std::move(folder)), most_bytes_(most_bytes), secret_(secret) {}

  /// Of each, `problem` is told why an entry that is there was not taken, or why there can be none; else it stays.
  std::optional<std::string> find(std::string_view key, std::string* problem = nullptr) const;
  void put(std::string_view key, std::string_view content, std::string* problem = nullptr) const;
  std::string path(std::string_view key) const;

 private:
  std::string name(std::string_view key) const;
  void make_room(int folder) const;

  std::string folder_;
  uint64_t most_bytes_;
  SipKey secret_;
  /// That may be put before the folder is looked through again.
  mutable std::atomic<int64_t> unseen_bytes_{0};
};

}  // namespace fullbore
