#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "fullbore/device/cuda/executor/compiled_node.h"
#include "fullbore/device/recorder.h"
#include "fullbore/ir/graph.h"

namespace fullbore::cuda {

/// z[i] = 3 x[i] + y[i] + 1 of 64-bit integers modulo 2^64, for which every order of launches gives another result.
struct MixingKernel {
  static constexpr int64_t kElements = 64;
  static constexpr int64_t kBytes = 8 * kElements;

  MixingKernel();
  /// What it makes, on the host.
  static void run(const uint64_t* x, const uint64_t* y, uint64_t* z);

  Graph graph;
  std::unique_ptr<CompiledNode> node;
};

}  // namespace fullbore::cuda
