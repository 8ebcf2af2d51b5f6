#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "fullbore/runtime/state.h"
#include "fullbore/train/config.h"
#include "workloads/energy_flow/flow_lattice.h"
#include "workloads/energy_flow/held_out_pairs.h"

namespace fullbore::energy_flow {

/// A trained model of model.name=energy_flow.
struct TrainedFlows {
  std::string path;  ///< of the checkpoint
  int64_t step = 0;
  Config config;
  State state;
};
/// UsageError: another model. DataError: no checkpoint, a damaged one, or weights of another geometry than its
/// configuration says. `tells`: what of the stored configuration is ignored, on stderr.
TrainedFlows load_flows(const std::string& run_or_checkpoint, bool tells = true);

/// An example's figures, a column each. Errors are means over the cells of squared differences from the target's surface.
enum class FlowScore : uint8_t {
  model_error,   ///< of the surface that comes out
  input_error,   ///< of the input's own surface
  mean_error,    ///< of the mean surface of the training pairs' targets
  model_cosine,  ///< of the angles to the target's surface; 0 of a surface that is 0
  input_cosine,
  mean_cosine
};
inline constexpr size_t kFlowScores = 6;
std::string_view flow_score_name(FlowScore score);  ///< "model_error"

/// Flows of all examples together.
struct Population {
  int64_t injected = 0, not_injected = 0;
  int64_t created = 0;  ///< injected and spawned
  int64_t spawned = 0, dropped = 0;
  int64_t exits = 0;              ///< left by an output plane
  int64_t projected = 0;          ///< counted within the lattice because of their age
  int64_t projected_on_stop = 0;  ///< or because the steps had ended
  int64_t active = 0;             ///< at the end, and not counted
  std::vector<std::pair<std::string, int64_t>> dead;  ///< by cause
  /// FlowCount and causes of death by step, as FlowRun::counts.
  std::vector<std::vector<int64_t>> by_step;

  int64_t died() const;
  /// Of those created: left or projected by age, as the stop rule has it. 0 of none.
  double completed_share() const;
  /// Flows that were created and of which nobody knows what has become of them: 0.
  int64_t unaccounted() const;
};

struct FlowMeasure {
  std::array<std::vector<double>, kFlowScores> scores;  ///< by example
  Population population;
  double steps = 0;  ///< T*, on the average over batches by their examples
  const std::vector<double>& of(FlowScore score) const {
    return scores[static_cast<size_t>(score)];
  }
};

/// Is told how many examples are done.
using MeasureProgress = std::function<void(int64_t done)>;

/// The mean [S] over the targets of these pairs of their surfaces.
std::vector<float> mean_target_surface(TrainedFlows& model, const PairRange& training);

/// Runs pairs through the lattice in batches of `batch`, the last of those that are left: each counts once, and no row
/// is filled up. By one program for each of the two sizes, whose results are a figure for each example.
FlowMeasure measure_flows(TrainedFlows& model, const LatticeOptions& lattice,
                          const PairRange& examples, int64_t batch,
                          const std::vector<float>& mean_surface,
                          const MeasureProgress& progress = {});

}  // namespace fullbore::energy_flow
