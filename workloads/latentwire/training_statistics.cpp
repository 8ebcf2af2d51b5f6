#include "workloads/latentwire/training_statistics.h"

#include "fullbore/ir/fp32_scope.h"
#include "workloads/latentwire/prefix_adapter.h"

namespace fullbore::latentwire {

TrainingStatistics training_statistics(Trace& trace, const Receiver& receiver) {
  const auto state = [&](const char* name) {
    return trace.state("training_statistics." + receiver.name + "." + name, Role::frozen,
                       {DType::f32, {}}, Initializer::zeros());
  };
  return {state("raw"), state("calibrated"), state("embeddings"), state("steps")};
}

std::vector<Carried> updated_statistics(const TrainingStatistics& before, Tensor raw,
                                        Tensor calibrated, const TableStatistics& table) {
  const Fp32Scope island(raw.builder());
  const Tensor steps = before.steps + 1.0;
  const auto moved = [&](Tensor mean, Tensor seen) {
    return Carried{mean, mean + (cast(stop_gradient(seen), DType::f32) - mean) / steps};
  };
  const auto mean_rms = [](Tensor vectors) { return reduce_mean(row_rms(vectors), {0}); };
  return {moved(before.raw, mean_rms(raw)), moved(before.calibrated, mean_rms(calibrated)),
          moved(before.embeddings, table.rms), Carried{before.steps, steps}};
}

Tensor calibrate_as_trained(const TrainingStatistics& seen, Tensor vectors, Tensor by_row) {
  const Fp32Scope island(vectors.builder());
  const Tensor some = greater(seen.steps, 0.0);
  const Tensor factor = seen.calibrated / select(some, seen.raw, 1.0);
  return select(some, vectors * cast(factor, vectors.dtype()), by_row);
}

}  // namespace fullbore::latentwire
