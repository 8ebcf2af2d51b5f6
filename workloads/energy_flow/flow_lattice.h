#pragma once
#include <string>
#include <vector>

#include "fullbore/ops/ops.h"
#include "workloads/energy_flow/flow_rule.h"
#include "workloads/energy_flow/lattice.h"

namespace fullbore::energy_flow {

/// What is counted of every step, in this order: a column each of FlowRun::counts. Behind these, a column for each cause
/// of death that the rule names.
enum class FlowCount : uint8_t { in, exits, projected, reflected, wanted, made, out, dead };
inline constexpr int64_t kFlowCounts = 7;

/// What became of a flow in a step: one of these, or `died` plus the number of its cause.
enum class FlowFate : uint8_t { stayed, left, projected, died };

/// Each step's moves, by rows of the store at its beginning: [T, C, ...] of T = most_steps() and C = capacity. What is not
/// `alive` has no meaning.
struct FlowTracks {
  Tensor alive;   ///< bool [T, C]
  Tensor id;      ///< i64 [T, C]
  Tensor from;    ///< [T, C, 3]
  Tensor to;      ///< [T, C, 3]
  Tensor energy;  ///< [T, C], behind the step
  Tensor fate;    ///< i32 [T, C]: FlowFate
};

/// Flows from the start surface to the readout.
struct FlowRun {
  Tensor surface;   ///< [B, S]
  Tensor executed;  ///< i64 []: T*, steps made
  /// i64 [most steps, kFlowCounts + causes of death]; rows of steps that were not made are zero.
  Tensor counts;
  std::vector<std::string> causes;  ///< of death
  Tensor created;                   ///< i64 [], injected and spawned
  Tensor dropped;                   ///< i64 [], children for which there was no room
  Tensor projected_on_stop;         ///< i64 []
  Tensor active;                    ///< i64 [], at the end, before they are projected
  int64_t injected = 0;
  int64_t not_injected = 0;  ///< under InjectOverflow::truncate
  FlowTracks tracks = {};    ///< empty without LatticeOptions::tracks
};

/// Runs flows with energies [B, S] through the lattice until they have ended, the stop rule says so, or
/// LatticeOptions::most_steps() steps were made. Gradients go to energies and to whatever the rule computes with, and
/// cost as many steps as were made. Hidden states of `layers` x [capacity, hidden_width] begin at zero.
///
/// Active flows are the first rows of a store of fixed capacity: each step moves all of them, then packs those that stay
/// (in their order) and their children (by parent, then by number) into the store, as far as there is room.
FlowRun run_flows(const LatticeOptions& options, const FlowRule& rule, Tensor energies,
                  int64_t layers, int64_t hidden_width);

}  // namespace fullbore::energy_flow
