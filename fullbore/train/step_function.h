#pragma once
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "fullbore/data/batch_source.h"
#include "fullbore/optim/optimizer.h"
#include "fullbore/runtime/state.h"
#include "fullbore/trace/trace.h"

namespace fullbore {

/// What else a model tells of a batch: dead code where nobody asks for it.
struct Metric {
  std::string name;
  Tensor mean;         ///< floating scalar
  Tensor weight = {};  ///< scalar: of how many it is the mean; none: of the loss's predictions
  /// Not a mean but a maximum, of which a batch in parts tells the largest. Evaluations tell the mean over their batches.
  bool largest = false;
};

/// One of the terms that a loss is the sum of. A term with a name that depends on no trained parameter is left out of
/// the sum, and a metric alone (frozen.h).
struct LossTerm {
  Tensor mean;    ///< floating scalar; 0 or anything finite if there is nothing to be a mean of
  Tensor weight;  ///< scalar: of how many it is the mean
  std::string name = {};  ///< of that metric; a weighted term is told as it is in the sum
};

/// State of the model's own that goes from batch to batch.
struct Carried {
  Tensor state;
  Tensor next;  ///< what the batch leaves behind
};

/// What a step makes small.
struct Loss {
  Loss(Tensor m, Tensor p = {}) : mean(m), predictions(p) {}  // NOLINT: a tensor is a loss
  Tensor mean;         ///< floating scalar: the mean over the batch's predictions
  Tensor predictions;  ///< scalar: how many there are; none: as many in every batch
  /// What `mean` is the sum of, where not all of it is a mean over the predictions; none: it is.
  std::vector<LossTerm> terms = {};
  std::vector<Metric> metrics = {};
  /// A step that is skipped leaves it alone. No gradient goes through it to the batch before.
  std::vector<Carried> carried = {};
  std::vector<std::string> dead = {};  ///< terms that were left out (frozen.h), by name
};

/// A model as the trainer knows it: writes into the trace how the loss follows from a batch.
/// `batch` holds one tensor per field of the batch source, in its order. Called for every program and every shape of
/// batch, and more than once where a step takes microbatches or halves of a batch, or where a setting is decided by the
/// traced loss: it must write the same nodes each time. trace.training() tells which program. What State is asked for
/// must not depend on the shape.
using LossFunction = std::function<Loss(Trace& trace, std::span<const Tensor> batch)>;

/// A traced graph, and how the State that it declares begins.
struct TracedStep {
  Graph graph;
  std::map<std::string, Initializer> initializers;
  std::vector<std::string> metrics = {};  ///< further results, f32 scalars, for the log
  /// Terms of the loss that depend on no trained parameter and so are metrics alone, by name.
  std::vector<std::string> dead_losses = {};
  /// Matmuls in 8-bit floats, by their weights (fp8_matmuls.h), in the order of what the State knows of them.
  std::vector<std::string> fp8_layers = {};
};

/// In how many equal parts a batch goes through the model.
struct Microbatches {
  int64_t accumulate = 1;  ///< one after another
  int64_t parallel = 1;    ///< each of those again, side by side
};

/// Batch inputs, loss, gradients, clipping, optimiser, counters. Results: `loss`, `gradient_norm`,
/// `learning_rate`, `skipped` (1 where loss or gradient norm is not finite and nothing was updated,
/// else 0), `predictions` where the loss tells them, f32 scalars, and those that `metrics` names, the loss's own
/// among them. With `noise_scale` every field that is no scalar must have the batch for its first axis, and an
/// even one, for the loss is traced on each half; both must have as many predictions.
/// `parts`: see microbatches.h.
TracedStep trace_training_step(const LossFunction& loss, const std::vector<BatchField>& fields,
                               const OptimizerOptions& optimizer, const Microbatches& parts = {});

/// Whose loss an evaluation measures.
enum class Weights : uint8_t {
  raw,  ///< the parameters
  ema   ///< their exponential moving averages
};

/// The loss alone, of the same State. Results: `loss`, `predictions` where the loss tells them, its metrics by their
/// names, and `<name>/weight` of those that have a weight.
TracedStep trace_evaluation(const LossFunction& loss, const std::vector<BatchField>& fields,
                            Weights weights = Weights::raw);

/// The result of trace_evaluation() that is a metric's weight, if it has one.
std::string metric_weight_name(const std::string& metric);

/// The graph with every parameter read from its moving average instead.
Graph with_ema(const Graph& graph);

/// The graph with State of role `recurrent` given as batch inputs, behind those that it has, and what it becomes as
/// results: one after another they are read from batch to batch, and the State is not touched.
Graph with_recurrent_states_given(const Graph& graph);

/// State that the graph asks for, filled as its initializers say; `random.seed`, if there is such
/// an entry, becomes the seed, and moving averages become what they are of. A thread pool shares the work and
/// changes no bit.
/// `further` entries are zero.
State initial_state(const TracedStep& step, uint64_t seed, std::shared_ptr<Device> device,
                    std::span<const LentEntry> lent = {}, std::span<const StateEntry> further = {});

/// Copies every parameter of the State to its moving average, where it has one: for parameters that
/// were filled anew.
void start_ema(State& state);

}  // namespace fullbore
