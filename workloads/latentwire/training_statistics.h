#pragma once
#include <vector>

#include "fullbore/train/step_function.h"
#include "workloads/latentwire/receiver.h"
#include "workloads/latentwire/receiver_weights.h"

namespace fullbore::latentwire {

/// What training has seen of the vectors that one receiver reads, kept with the run beside its parameters: means over steps,
/// f32 [] each, State of role `frozen` (no parameter, and kept with the weights) under "training_statistics.NAME".
struct TrainingStatistics {
  Tensor raw;         ///< root mean square of a row's vectors before calibration
  Tensor calibrated;  ///< and behind it
  Tensor embeddings;  ///< of the receiver's token table
  Tensor steps;       ///< how many; 0: nothing has been seen
};
TrainingStatistics training_statistics(Trace& trace, const Receiver& receiver);

/// What a step leaves behind that has seen vectors [B,M,d].
std::vector<Carried> updated_statistics(const TrainingStatistics& before, Tensor raw,
                                        Tensor calibrated, const TableStatistics& table);

/// Vectors times calibrated / raw: one factor for all rows, which keep their differences. Where nothing has been seen,
/// those that each row's own calibration makes, `by_row`.
Tensor calibrate_as_trained(const TrainingStatistics& seen, Tensor vectors, Tensor by_row);

}  // namespace fullbore::latentwire
