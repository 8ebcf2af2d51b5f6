#include "fullbore/app/workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "fullbore/base/check.h"
#include "fullbore/train/frozen.h"

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

OpenedWorkload open_workload(const Config& config, Console& console, const StandIn& synthetic) {
  const Workload* const workload = find_workload(config);
  if (workload == nullptr)
    throw UsageError(fmt::format("there is no workload for model.name='{}'", config.model.name));
  OpenedWorkload opened = workload->open(config, console, synthetic);
  opened.loss = [loss = std::move(opened.loss)](const Config& each) {
    return with_frozen(loss(each), each.train.freeze);
  };
  opened.job = [job = std::move(opened.job)](const Config& each) {
    TrainingJob made = job(each);
    made.loss = with_frozen(std::move(made.loss), each.train.freeze);
    return made;
  };
  return opened;
}

}  // namespace fullbore
