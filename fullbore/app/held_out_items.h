#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "fullbore/app/workload.h"
#include "fullbore/train/evaluator.h"

namespace fullbore {

/// Every batch of a set as an item, with the loss and its metrics; a batch is known by the hash of its bytes.
MeasuredItems measure_batches(Evaluator& evaluator, const std::string& subject,
                              const std::string& data, Console& console);

/// A checkpoint on the batches that its run held out, whatever its workload: as evaluations of the run have them. With a
/// `seed`, on those that the run would have held out with this run.seed: made-up data are drawn by it.
/// UsageError: it held nothing out, or `request` names other data or frozen weights, which only own items know.
MeasuredItems measure_held_out(const EvalRequest& request, std::optional<int64_t> seed = {});

}  // namespace fullbore
