#include "workloads/latentwire/token_cache.h"

namespace fullbore::latentwire {
namespace {

constexpr size_t kEntryBytes = 96;  // of the map, beside the tokens

}  // namespace

std::vector<int32_t> TokenCache::get(uint64_t key,
                                     const std::function<std::vector<int32_t>()>& make) {
  {
    const std::scoped_lock lock(mutex_);
    const auto found = kept_.find(key);
    if (found != kept_.end()) {
      ++figures_.found;
      return found->second;
    }
  }
  std::vector<int32_t> made = make();  // by several threads at once: tokenizing takes the time
  const std::scoped_lock lock(mutex_);
  ++figures_.made;
  const size_t bytes = made.size() * sizeof(int32_t) + kEntryBytes;
  if (figures_.bytes + bytes <= most_bytes_ && kept_.emplace(key, made).second)
    figures_.bytes += bytes;
  return made;
}

TokenCache::Figures TokenCache::figures() const {
  const std::scoped_lock lock(mutex_);
  return figures_;
}

}  // namespace fullbore::latentwire
