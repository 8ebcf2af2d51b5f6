#pragma once
#include <cstdint>

#include "fullbore/train/config.h"

namespace fullbore {

/// Bytes that a run takes whatever the planner does, told by the sizes alone, in no time and memory: the matrices of the
/// model in fp32, and the batches that are kept ready. A lower bound; what there is beside it is
/// planned. Sizes that are not known yet (model.vocabulary=0) count for nothing.
struct LeastMemory {
  double parameters = 0;        ///< elements of the matrices
  double parameter_bytes = 0;   ///< theirs
  double batch_bytes = 0;       ///< of one batch's tokens or peaks
  double prefetched_bytes = 0;  ///< of all batches that data.prefetch keeps
  double bytes() const { return parameter_bytes + prefetched_bytes; }
};
LeastMemory least_memory(const Config& config);

/// MemoryError that names the sizes, what they come to and engine.memory_budget, where that cannot hold them. Before a
/// graph is traced: a slip of the keyboard must not cost gigabytes.
void check_least_memory(const Config& config);

}  // namespace fullbore
