#include "fullbore/device/cuda/executor/direct_edges.h"

#include <algorithm>
#include <cstddef>

namespace fullbore::cuda {
namespace {

constexpr size_t kBits = 64;

}  // namespace

// Latest first: what one of them follows comes behind it.
std::vector<int> DirectEdges::add(const Candidates& candidates) {
  std::vector<uint64_t> followed(followed_.size() / kBits + 1);
  std::vector<int> direct;
  for (const int candidate : candidates) {
    const auto at = static_cast<size_t>(candidate);
    if ((followed[at / kBits] >> at % kBits & 1) != 0) continue;
    direct.push_back(candidate);
    followed[at / kBits] |= uint64_t{1} << at % kBits;
    std::ranges::transform(followed_[at], followed, followed.begin(), std::bit_or<>{});
  }
  followed_.push_back(std::move(followed));
  return direct;
}

}  // namespace fullbore::cuda
