#pragma once
#include <cstdint>
#include <string>

namespace fullbore::energy_flow {

/// How a flow's next place is predicted.
enum class FlowMode : uint8_t {
  relative,  ///< R: a displacement; starts in the middle, leaves by either side, continuous positions
  absolute  ///< A: a place of the lattice; starts at z = 0, leaves by z = D - 1, whole positions
};

/// How what arrives at one cell becomes its value.
enum class Readout : uint8_t { softmax, linear };

/// What becomes of flows for which there is no room at the start.
enum class InjectOverflow : uint8_t { error, truncate };

/// When a batch, or each of its samples, has done enough steps.
struct StopOptions {
  bool on = true;
  double threshold = 0.95;  ///< share of flows that have completed
  int64_t patience = 3;     ///< checks without another completion
  int64_t min_steps = 5;
  bool of_initial = false;  ///< completed of those injected, not of those created
  bool per_sample = false;  ///< a sample's result does not depend on its companions then
};

/// The lattice, its flows and how they move. Cells are row-major: cell = y W + x.
struct LatticeOptions {
  FlowMode mode = FlowMode::relative;
  int64_t width = 20;
  int64_t height = 20;
  int64_t depth = 10;
  int64_t capacity = 50000;  ///< flows that are active at once
  /// The rule moves so many rows of the store at a time, only where there are flows (ops/map_rows.h): a step's time goes
  /// by its flows. 0: all rows at once. What a rule draws by rows, as dropout does, repeats from tile to tile.
  int64_t tile_rows = 0;
  InjectOverflow inject_overflow = InjectOverflow::error;

  double spawn_threshold = 0.5;    ///< of a move's length (R), of the gate (A)
  int64_t most_spawned = 1;        ///< children of a flow in a step
  double energy_threshold = 0.05;  ///< A: a flow dies at (e + 1) / 2 at or below
  double noise =
      0;  ///< standard deviation that training adds to positions: of [-1, 1] (R), in cells (A)
  double displacement_scale = 1;
  bool project_on_stop = true;  ///< flows still active at the end count where they are
  StopOptions stop = {};
  /// Stretches of steps of which training keeps the beginning and all decisions, and makes the rest anew
  /// (LoopOptions::segments); 0 and 1 keep everything.
  int64_t segments = 0;

  Readout readout = Readout::softmax;
  bool importance_gradient = true;  ///< through the weights of the merge too
  bool tracks = false;              ///< FlowRun::tracks, of each flow in each step: for pictures

  int64_t surface() const { return width * height; }  ///< S, cells
  /// No flow makes more steps: D / 2 in mode R, D in mode A.
  int64_t most_steps() const { return mode == FlowMode::relative ? depth / 2 : depth; }
};

/// UsageError that names the option which cannot be, and what it would have to be; of capacity for so many samples.
void require_lattice(const LatticeOptions& options, int64_t samples);

}  // namespace fullbore::energy_flow
