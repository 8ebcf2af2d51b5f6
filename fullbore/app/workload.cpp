#include "fullbore/app/workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "fullbore/base/check.h"
#include "fullbore/base/error.h"
#include "fullbore/train/frozen.h"
#include "fullbore/train/frozen_weights.h"

namespace fullbore {
namespace {

std::vector<Workload>& registry() {
  static std::vector<Workload> all;
  return all;
}

}  // namespace

void register_workload(Workload workload) {
  FB_CHECK(workload.keys.models.empty() || workload.open, "'{}' has models and cannot open them",
           workload.name);
  workload.keys.name = workload.name;
  register_config_keys(workload.keys);
  if (workload.registers) workload.registers();
  std::vector<Workload>& all = registry();
  const auto place = std::ranges::upper_bound(all, workload.name, {}, &Workload::name);
  all.insert(place, std::move(workload));
}

const std::vector<Workload>& workloads() { return registry(); }

const Workload* find_workload(const Config& config) {
  const auto found = std::ranges::find_if(registry(), [&](const Workload& workload) {
    return std::ranges::find(workload.keys.models, config.model.name) != workload.keys.models.end();
  });
  return found == registry().end() ? nullptr : &*found;
}

QualityMetrics declared_quality(const Config& config) {
  const Workload* const workload = find_workload(config);
  if (workload == nullptr || !workload->quality) return {};
  QualityMetrics metrics = workload->quality(config);
  check_quality(metrics);
  return metrics;
}

OpenedWorkload open_workload(const Config& config, Console& console, const StandIn& synthetic) {
  const Workload* const workload = find_workload(config);
  if (workload == nullptr)
    throw UsageError(fmt::format("there is no workload for model.name='{}'", config.model.name));
  OpenedWorkload opened = workload->open(config, console, synthetic);
  std::shared_ptr<const FrozenWeights> weights;
  if (const std::string& path = config.train.frozen_from; !path.empty()) {
    if (config.train.freeze.empty())
      throw UsageError("train.frozen_from is of frozen parameters, and train.freeze names none");
    if (opened.frozen)
      throw UsageError(fmt::format(
          "train.frozen_from is not for model.name={}, whose frozen weights are read from {}",
          config.model.name, opened.frozen->path()));
    weights = std::make_shared<FrozenWeights>(MappedTensors::open(path));
  }
  const auto freeze = [weights](LossFunction loss, const Config& each) {
    FrozenScope::Storage storage;
    if (weights) storage = [weights](const std::string& name) { return weights->storage(name); };
    return with_frozen(std::move(loss), each.train.freeze, std::move(storage));
  };
  opened.loss = [loss = std::move(opened.loss), freeze](const Config& each) {
    return freeze(loss(each), each);
  };
  opened.job = [job = std::move(opened.job), freeze, weights](const Config& each) {
    TrainingJob made = job(each);
    made.loss = freeze(std::move(made.loss), each);
    if (weights) made.frozen = weights;
    return made;
  };
  if (weights) opened.frozen = weights;
  return opened;
}

}  // namespace fullbore
