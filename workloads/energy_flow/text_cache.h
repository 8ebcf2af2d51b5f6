#pragma once
#include <array>
#include <cstdint>
#include <list>
#include <map>
#include <span>
#include <string_view>
#include <utility>

namespace fullbore::energy_flow {

/// 128 bits of two xxHash64: what texts and surfaces are known by in a cache.
using CacheKey = std::array<uint64_t, 2>;
CacheKey text_key(std::string_view text);
/// Of all values, in steps of 2^-12. The sum alone would take surfaces with the same cells in another order for one.
CacheKey surface_key(std::span<const float> surface);

/// At most `capacity` values, of which the one that was asked for longest ago makes room for a new one. What a model makes
/// depends on its weights: another version of them empties the cache.
template <class Value>
class LruCache {
 public:
  explicit LruCache(size_t capacity) : capacity_(capacity) {}

  /// Forgets everything unless the version is the one before.
  void set_version(uint64_t version) {
    if (version == version_) return;
    version_ = version;
    places_.clear();
    entries_.clear();
  }
  /// Valid until the next call of put() or set_version(); null: there is none.
  const Value* get(const CacheKey& key) {
    const auto found = places_.find(key);
    found == places_.end() ? ++misses_ : ++hits_;
    if (found == places_.end()) return nullptr;
    entries_.splice(entries_.begin(), entries_, found->second);
    return &found->second->second;
  }
  void put(const CacheKey& key, Value value) {
    if (capacity_ == 0) return;
    if (const auto found = places_.find(key); found != places_.end()) {
      found->second->second = std::move(value);
      entries_.splice(entries_.begin(), entries_, found->second);
      return;
    }
    if (entries_.size() == capacity_) {
      places_.erase(entries_.back().first);
      entries_.pop_back();
    }
    entries_.emplace_front(key, std::move(value));
    places_[key] = entries_.begin();
  }
  size_t size() const { return entries_.size(); }
  int64_t hits() const { return hits_; }
  int64_t misses() const { return misses_; }

 private:
  using Entries = std::list<std::pair<CacheKey, Value>>;
  size_t capacity_;
  uint64_t version_ = 0;
  Entries entries_;  ///< the one asked for last first
  std::map<CacheKey, typename Entries::iterator> places_;
  int64_t hits_ = 0;
  int64_t misses_ = 0;
};

}  // namespace fullbore::energy_flow
