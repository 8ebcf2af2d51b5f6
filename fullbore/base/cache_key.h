#pragma once
#include <string>

#include "fullbore/base/result.h"
#include "fullbore/base/siphash.h"

namespace fullbore {

/// The key by which this user's caches know what they have written themselves: whoever can put files into
/// a cache, but cannot read the key, can make no entry that is taken.

/// $XDG_STATE_HOME/fullbore, else $HOME/.local/state/fullbore (XDG base directory specification 0.8; of
/// both, paths that are not absolute count as unset); "" where there is neither.
std::string state_directory();

/// The key in the file "cache.key" of a folder, made of 16 random bytes where there is none. The folder and
/// the file belong to the effective user, the file has mode 0600, and neither is a link: otherwise a Failure.
/// Any number of processes at once agree on one key.
Result<SipKey> read_or_make_cache_key(const std::string& folder);

struct CacheKey {
  SipKey key{};
  std::string missing;  ///< "", or why it is of this process alone
};
/// The process's: that of state_directory(), or a random one of its own. Each folder is looked into once.
const CacheKey& cache_key();

}  // namespace fullbore
