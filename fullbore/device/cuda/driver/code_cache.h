#pragma once
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "fullbore/base/content_cache.h"

namespace fullbore::cuda {

struct Card;
class Driver;

/// Machine code that the driver has made of PTX, on disk for later starts: by the PTX, the driver's version and file, and
/// the card's name and compute capability. It is run as it is read. So it lies where code of processors does, under the same
/// rules (base/content_cache.h, docs/security.md): nothing is found but what this user's key has signed.
///
/// What is damaged, foreign or cannot be written is compiled anew; the first time in a process that this happens in a
/// folder, a warning on stderr says why. Everything here may be called by several threads at once.
class CodeCache {
 public:
  CodeCache(const Driver& driver, const Card& card);

  /// False: nothing is to be kept (compile_cache_directory()). The first call looks for the folder.
  bool is_open();
  /// Both after is_open().
  std::optional<std::string> find(std::string_view ptx) const;
  void put(std::string_view ptx, std::string_view code) const;
  /// One line on stderr, unless there was one of this folder.
  void warn(const std::string& problem) const;

 private:
  std::string key(std::string_view ptx) const;

  std::string made_for_;  ///< all of the key but the PTX
  std::once_flag looked_;
  std::string folder_;
  std::optional<ContentCache> cache_;
};

}  // namespace fullbore::cuda
