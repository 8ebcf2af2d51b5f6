#pragma once
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "fullbore/ops/ops.h"
#include "workloads/energy_flow/flow_networks.h"
#include "workloads/energy_flow/lattice.h"

namespace fullbore::energy_flow {

/// Flows side by side, a row each: what a rule is told of them. Rows that hold no flow are zero; a rule need not know
/// which ones those are.
struct Flows {
  Tensor position;             ///< [n, 3]
  Tensor energy;               ///< [n, 1]
  std::vector<Tensor> hidden;  ///< a layer of the carrier each, [n, Hd]
  Tensor age;                  ///< i32 [n], steps since birth
  Tensor id;                   ///< i64 [n], unique in a batch
  Tensor step;                 ///< i64 []
};

/// What a rule makes of each flow. Truths are bool [n]; a row may be true in one of exits, projects and deaths at most.
/// What was decided is constant to gradients: they flow through values.
struct FlowMove {
  Flows next;       ///< where it is after the step; id and step are not read
  Tensor exits;     ///< it leaves and is recorded
  Tensor projects;  ///< it ends within the lattice and is recorded at a distance; empty: none does
  /// Why flows die, with a name each: "energy". They are not recorded.
  std::vector<std::pair<std::string, Tensor>> deaths = {};
  Tensor children;        ///< i32 [n], born of a flow that stays
  Flows child;            ///< what they begin as: position, energy and hidden are read
  Tensor reflected = {};  ///< bool [n], for counting alone; may be empty
};

/// Where a flow counts if it ends.
struct FlowEnd {
  Tensor cell;      ///< i32 [n], of the surface
  Tensor distance;  ///< [n], to the surface
};

/// A step of one flow, and where it would end. All that an experiment with the dynamics has to write: storing, spawning,
/// stopping, merging and gradients are not its matter.
struct FlowRule {
  std::function<FlowMove(const Flows&)> move;
  std::function<FlowEnd(const Flows&)> end;
};

/// Draws standard normal numbers [n, 3] for flows, the same for a flow and step in whatever row it is.
using FlowNoise = std::function<Tensor(const Flows&)>;

/// Sets elements of x [n, channels] to zero, at random by flow and step.
using FlowDropout = std::function<Tensor(const Flows& flows, Tensor x)>;

/// R: displacements in the cube [-1, 1]^3, reflected by four walls; out by z = -1 and z = 1, or projected on the nearer
/// of these at age D / 2. `scale` [] multiplies displacements; may be empty. `noise` may be.
FlowRule relative_rule(const LatticeOptions& options, const NetworkWeights& weights,
                       Tensor scale = {}, const FlowNoise& noise = {});

/// A: jumps to whole positions of the lattice, ever further in z; out at z = D - 1. `z_bias` [n] of flows, in cells, is
/// added to z; may be empty.
FlowRule absolute_rule(const LatticeOptions& options, const NetworkWeights& weights,
                       const std::function<Tensor(const Flows&)>& z_bias = {},
                       const FlowNoise& noise = {}, const FlowDropout& drop = {});

}  // namespace fullbore::energy_flow
