#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace fullbore::latentwire {

/// Tokens of a file's texts, kept from the first time that they are asked for, so that no epoch but the first tokenizes.
/// Any number of threads.
class TokenCache {
 public:
  /// `most_bytes`: what is kept at most; what comes later is made each time. 0: nothing is kept.
  explicit TokenCache(size_t most_bytes) : most_bytes_(most_bytes) {}

  /// What `make` makes, which for the same key is always the same.
  std::vector<int32_t> get(uint64_t key, const std::function<std::vector<int32_t>()>& make);

  struct Figures {
    int64_t found = 0;
    int64_t made = 0;
    size_t bytes = 0;
  };
  Figures figures() const;

 private:
  mutable std::mutex mutex_;
  const size_t most_bytes_;
  std::unordered_map<uint64_t, std::vector<int32_t>> kept_;
  Figures figures_;
};

}  // namespace fullbore::latentwire
