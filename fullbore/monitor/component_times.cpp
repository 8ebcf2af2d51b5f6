#include "fullbore/monitor/component_times.h"

#include <algorithm>
#include <cctype>

#include "fullbore/monitor/launch_times.h"

namespace fullbore {

std::string component_of(const std::string& scope) {
  std::string component;
  int names = 0;
  for (size_t begin = 0; begin < scope.size() && names < 2;) {
    const size_t end = std::min(scope.find('.', begin), scope.size());
    const std::string name = scope.substr(begin, end - begin);
    begin = end + 1;
    if (std::ranges::all_of(name, [](unsigned char c) { return std::isdigit(c) != 0; })) continue;
    component += (names++ == 0 ? "" : ".") + name;
  }
  return component.empty() ? "other" : component;
}

ComponentTimes::ComponentTimes(const Plan& plan) : list_(launch_list(plan)) {
  for (const LaunchEntry& entry : list_) {
    const Node* const node = entry.node();
    const std::string name = component_of(node ? node->scope : "");
    const auto known = std::ranges::find(components_, name);
    component_of_.push_back(static_cast<size_t>(known - components_.begin()));
    if (known == components_.end()) components_.push_back(name);
  }
}

std::vector<ComponentTime> ComponentTimes::of(std::span<const LaneEvents> workers,
                                              double step_seconds) const {
  std::vector<ComponentTime> result;
  for (const std::string& name : components_) result.push_back({name, 0});
  double launched = 0;
  const std::vector<LaunchTime> times = launch_times(workers, list_);
  for (size_t i = 0; i < times.size(); ++i) {
    result[component_of_[i]].seconds += times[i].seconds;
    launched += times[i].seconds;
  }
  std::erase_if(result, [](const ComponentTime& each) { return each.seconds == 0; });
  std::ranges::stable_sort(result, std::greater<>(), &ComponentTime::seconds);
  result.push_back({"idle", std::max(0.0, step_seconds - launched)});
  return result;
}

}  // namespace fullbore
