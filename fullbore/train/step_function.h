#pragma once
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "fullbore/data/batch_source.h"
#include "fullbore/optim/adamw.h"
#include "fullbore/runtime/state.h"
#include "fullbore/trace/trace.h"

namespace fullbore {

/// A model as the trainer knows it: writes into the trace how the loss follows from a batch.
/// `batch` holds one tensor per field of the batch source, in its order; the result is the mean
/// loss over the batch, a floating scalar. Called once per program: trace.training() tells which.
using LossFunction = std::function<Tensor(Trace& trace, std::span<const Tensor> batch)>;

/// A traced graph, and how the State that it declares begins.
struct TracedStep {
  Graph graph;
  std::map<std::string, Initializer> initializers;
};

/// Batch inputs, loss, gradients, clipping, AdamW, step counter. Results: `loss`, `gradient_norm`,
/// `learning_rate`, f32 scalars.
TracedStep trace_training_step(const LossFunction& loss, const std::vector<BatchField>& fields,
                               const AdamWOptions& optimizer);

/// The loss alone, of the same State. Result: `loss`.
TracedStep trace_evaluation(const LossFunction& loss, const std::vector<BatchField>& fields);

/// State that the graph asks for, filled as its initializers say; `random.seed`, if there is such
/// an entry, becomes the seed.
State initial_state(const TracedStep& step, uint64_t seed);

}  // namespace fullbore
