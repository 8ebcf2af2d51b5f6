#include "fullbore/device/cuda/executor/launch_kinds.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <optional>
#include <utility>

namespace fullbore::cuda {
namespace {

// A launch of more blocks for each multiprocessor than this fills the card.
constexpr int kMostWaves = 4;
// Blocks of merged launches are as many as the largest has, and those that others do not have end at once: extents of one
// kind differ by eight times at most.
constexpr int kWidthsOfAKind = 3;

}  // namespace

const LaunchKind* LaunchKinds::of(const LoadedKernel& kernel) {
  if (kernel.node->library() != nullptr) return nullptr;
  const int64_t most_blocks = int64_t{kMostWaves} * multiprocessors_;
  std::string text;
  for (const LoadedLaunch& loaded : kernel.launches) {
    const Launch& launch = *loaded.launch;
    const int64_t blocks = int64_t{launch.grid.x} * launch.grid.y * launch.grid.z;
    if (blocks > most_blocks) return nullptr;
    text += fmt::format("{} {} {} {} {} {} {};", fmt::ptr(loaded.function), launch.block.x,
                        launch.block.y, launch.block.z, launch.dynamic_shared_bytes,
                        std::bit_width(launch.grid.x) / kWidthsOfAKind,
                        std::bit_width(launch.grid.y) / kWidthsOfAKind);
  }
  const auto [found, is_new] = kinds_.try_emplace(text);
  LaunchKind& kind = found->second;
  if (is_new) {
    kind.number = static_cast<int>(kinds_.size());
    kind.most = std::numeric_limits<int>::max();
    for (const LoadedLaunch& loaded : kernel.launches) {
      std::optional<MergedCode> code = merged_code(*loaded.launch);
      kind.most = std::min(kind.most, code ? static_cast<int>(code->most_launches) : 1);
      if (code) kind.codes.push_back(std::move(*code));
    }
  }
  return kind.most > 1 ? &kind : nullptr;
}

}  // namespace fullbore::cuda
