#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "workloads/energy_flow/flow_measure.h"

namespace fullbore::energy_flow {

/// One flow's way, in cells and planes: x in [0, W - 1], y in [0, H - 1], z in [0, D].
struct FlowPath {
  int64_t id = 0;
  int64_t born = 0;                           ///< the step that it first moves in
  std::vector<std::array<double, 3>> places;  ///< where it began, and where each step took it
  std::vector<double> energies;               ///< behind each step: one fewer than places
  FlowFate fate = FlowFate::stayed;           ///< `stayed`: it was active at the end
  size_t cause = 0;                           ///< of death, in FlowHistory::causes
};

/// What the lattice did with one pair.
struct FlowHistory {
  FlowMode mode = FlowMode::relative;
  int64_t width = 0, height = 0, depth = 0;
  int64_t steps = 0;                          ///< T*
  std::vector<std::string> causes;            ///< of death
  std::vector<std::vector<int64_t>> by_step;  ///< FlowCount and causes, of the steps that were made
  int64_t projected_on_stop = 0;
  int64_t dropped = 0;
  std::vector<double> input, output, target;  ///< surfaces, [H, W]
  std::vector<FlowPath> paths;                ///< by id
};

/// Runs a pair alone, and notes every move.
FlowHistory record_flows(TrainedFlows& model, const PairRange& examples, int64_t which);

}  // namespace fullbore::energy_flow
