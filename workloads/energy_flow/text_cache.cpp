#include "workloads/energy_flow/text_cache.h"

#include <cmath>
#include <vector>

#include "fullbore/base/hash.h"

namespace fullbore::energy_flow {
namespace {

constexpr uint64_t kSecondSeed = 0x9E3779B97F4A7C15U;
constexpr float kStepsOfOne = 4096;

CacheKey key_of(const void* data, size_t size) {
  return {hash_bytes(data, size), hash_bytes(data, size, kSecondSeed)};
}

}  // namespace

CacheKey text_key(std::string_view text) { return key_of(text.data(), text.size()); }

CacheKey surface_key(std::span<const float> surface) {
  std::vector<int64_t> steps;
  steps.reserve(surface.size());
  for (const float value : surface) steps.push_back(std::llrint(value * kStepsOfOne));
  return key_of(steps.data(), steps.size() * sizeof(int64_t));
}

}  // namespace fullbore::energy_flow
