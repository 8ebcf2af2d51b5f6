#pragma once
#include <cstdint>
#include <vector>

#include "fullbore/train/step_function.h"

namespace fullbore {

/// How many shards a step's batch should be cut into for so many workers (batch_parts.h): as many as divide the
/// workers and the rows of every shape of batch, or of the parts of it that go one after another; 1 where
///
/// - the batch cannot be cut, for some field's first axis is another, or the model keeps State of its own;
/// - the terms of the loss are counted by predictions, so that parts would be run forwards twice;
/// - the model does little with its parameters for one batch: each shard has gradients of its own, whose bytes would
///   be a good part of all that the step moves.
///
/// `shapes`: of all batches, first axes first. Traces the loss once.
int64_t shard_count(const LossFunction& loss, const std::vector<std::vector<BatchField>>& shapes,
                    int64_t accumulate, int workers);

}  // namespace fullbore
