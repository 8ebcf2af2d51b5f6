#pragma once
#include <cstdint>
#include <vector>

#include "fullbore/train/step_function.h"

namespace fullbore {

/// How many parallel microbatches a batch is cut into where nobody says (microbatches.h). It follows from the job
/// alone, the model and its batch, never from the workers: the same job has the same bits on any number of them. Four,
/// or two, or one: as many as divide the rows of every shape of batch, or of the sequential microbatches of it, and
/// each of which does enough with the weights, frozen ones too, for one batch. For each microbatch reads the weights and
/// has gradients of its own, whose bytes would else be a good part of all that the step moves. One where
///
/// - the batch cannot be cut, for a field has it along no axis (BatchField::batch_axis) or has other rows, or the model
///   keeps State of its own;
/// - the terms of the loss are counted by predictions, so that microbatches would be run forwards twice.
///
/// `shapes`: of all batches. Traces the loss once.
int64_t parallel_count(const LossFunction& loss, const std::vector<std::vector<BatchField>>& shapes,
                       int64_t accumulate);

/// That number, and then the others of 1, 2 and 4 that the batch can be cut in, for runs that memory limits: the
/// nearest ones first, and more rather than fewer, because each then has fewer activations and microbatches may go one
/// after another.
std::vector<int64_t> parallel_counts(const LossFunction& loss,
                                     const std::vector<std::vector<BatchField>>& shapes,
                                     int64_t accumulate);

}  // namespace fullbore
