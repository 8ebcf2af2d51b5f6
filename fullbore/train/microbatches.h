#pragma once
#include <vector>

#include "fullbore/train/step_function.h"

namespace fullbore {

/// A training step whose batch goes through the model in equal microbatches. Gradients are summed in f32, in the order
/// of the microbatches, and counted by predictions, so that the step is that of the whole batch to rounding, however
/// unequally the microbatches' predictions are spread. Random draws differ from microbatch to microbatch.
///
/// `accumulate` microbatches go one after another, a loop around forward and backward pass that carries the sums: the
/// activations of one microbatch are all that is ever kept. Each of them goes in `parallel` side by side, a parallel
/// loop (ir/loop.h) that stacks what they add: thread groups of workers take one each from its first launch to its last
/// gradient, so that they neither wait for one another nor read what another has written until the sums, and their
/// values stay in caches of their own. The bits depend on the number of microbatches, not on that of workers.
///
/// A loss of terms that are means of different things (Loss::terms) is weighted term by term. What each is the mean
/// of in the whole batch is counted by a loop of its own, ahead. Where the batch alone decides it (slots, spectra),
/// that is next to nothing; where it takes predictions (matched ions), it is another forward pass.
///
/// Every field's batch axis must have as many rows, a multiple of all microbatches: UsageError; fields without one go to
/// every microbatch whole. A UsageError it is, too, if the model updates State of its own that goes from batch to batch
/// (recurrent sequences). State of role `control` that it updates, running statistics of nn::batch_norm, is handed from one
/// of the `accumulate` microbatches to the next: each is normalised by statistics of its own, as where PyTorch accumulates
/// gradients, and the step is then not that of the whole batch. With `parallel` ones, which hand on nothing: UsageError.
/// Sets `whole` to the loss of the batch.
OptimizerResult optimize_microbatches(Trace& trace, const LossFunction& loss,
                                      const std::vector<BatchField>& fields,
                                      const Microbatches& microbatches,
                                      const OptimizerOptions& options, Loss& whole);

/// Is the loop one of those that this writes around the microbatches of a step? Known by its location, which passes
/// keep.
bool is_over_microbatches(const Node& loop);

/// Checks what a LossFunction has returned; UsageError.
Loss checked_loss(Loss loss);

}  // namespace fullbore
