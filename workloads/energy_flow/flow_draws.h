#pragma once
#include <cstdint>

#include "fullbore/ops/ops.h"
#include "workloads/energy_flow/flow_rule.h"

namespace fullbore::energy_flow {

/// Random numbers of a draw site that belong to a flow and a step: they do not depend on the row that the flow is in, on
/// capacity, tiles or threads. Philox4x32-10 with the run's seed as key and the counter
///
///   id + (t << 32) + (group << 48),  g + (site << 40)
///
/// of a flow's id (below 2^32), the lattice's step t plus most_steps times the microbatch (below 2^16), the optimiser's
/// step g, and the group of channels (below 2^16).
class FlowDraws {
 public:
  /// `source`: of Trace::random(), outside of the loop over steps.
  FlowDraws(const RandomSource& source, int64_t most_steps)
      : source_(source), most_steps_(most_steps) {}

  /// Standard normal numbers [n, 3], by Box and Muller 1958.
  Tensor normals(const Flows& flows, DType dtype) const;
  /// x [n, channels] / (1 - p) with probability 1 - p, else 0; p to the nearest multiple of 2^-16.
  Tensor dropout(const Flows& flows, Tensor x, double probability) const;

 private:
  struct Counters {
    Tensor low, high;
  };
  Counters counters(const Flows& flows) const;

  RandomSource source_;
  int64_t most_steps_;
};

}  // namespace fullbore::energy_flow
