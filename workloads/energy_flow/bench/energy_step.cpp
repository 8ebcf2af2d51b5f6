// Fullbore's side of peers/compare_energy: bench/support/training_step.h.
#include "bench/support/training_step.h"
#include "fullbore/base/error.h"
#include "workloads/energy_flow/energy_job.h"
#include "workloads/energy_flow/energy_keys.h"

namespace fullbore {
namespace {

// Every side trains on the same ones, and begins anew with the first when it has had them all.
constexpr int64_t kSharedBatches = 64;

void check(const Config& config) {
  const EnergyKeys& keys = energy_keys(config);
  const Config::Optim& optim = config.optim;
  if (keys.lattice.mode != "relative" || keys.lattice.noise != 0 || keys.lattice.final_noise != 0 ||
      keys.lattice.displacement_scale != 1 || keys.lattice.least_displacement_scale != 1 ||
      keys.lattice.inject_overflow != "error" || keys.lattice.stop_scope != "batch" ||
      keys.lattice.readout == "linear" || keys.lattice.importance_gradient == "detached" ||
      keys.model.train_mapper || keys.loss.collector_weight != 0 || config.engine.accumulate != 1 ||
      optim.name != "adamw" || optim.schedule != "cosine" || optim.decay_policy != "all" ||
      !optim.groups.empty() || optim.ema_decay != 0 || optim.clip_value != 0 || optim.noise_scale)
    throw UsageError(
        "the peers know the relative mode without noise and with displacements as they are, "
        "stopped "
        "by batches and read out by softmax with all of its gradient, a mapper that stays as it is "
        "drawn, no collector, and adamw with one decay of all tensors and a cosine schedule");
}

bench::Json sizes(const Config& config, const TrainingJob&) {
  const energy_flow::LatticeOptions lattice = energy_flow::lattice_options(config);
  return {{"flows", config.train.batch_size * lattice.surface()},
          {"width", lattice.width},
          {"height", lattice.height},
          {"depth", lattice.depth},
          {"capacity", lattice.capacity},
          {"spawn_threshold", lattice.spawn_threshold},
          {"most_spawned", lattice.most_spawned},
          {"project_on_stop", lattice.project_on_stop ? 1 : 0},
          {"early_stop", lattice.stop.on ? 1 : 0},
          {"stop_threshold", lattice.stop.threshold},
          {"stop_patience", lattice.stop.patience},
          {"stop_min_steps", lattice.stop.min_steps},
          {"stop_of_initial", lattice.stop.of_initial ? 1 : 0}};
}

}  // namespace
}  // namespace fullbore

int main(int argc, char** argv) {
  return fullbore::bench::run_training_step(argc, argv,
                                            {.model = "energy_flow",
                                             .check = fullbore::check,
                                             .sizes = fullbore::sizes,
                                             .counted = "samples",
                                             .shared_batches = fullbore::kSharedBatches});
}
