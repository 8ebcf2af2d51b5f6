#pragma once
#include <span>
#include <string>
#include <vector>

#include "fullbore/device/recorder.h"
#include "fullbore/plan/launch_list.h"

namespace fullbore {

struct ComponentTime {
  std::string component;
  double seconds = 0;
};

/// The part of a model that a node belongs to: the first two names of its scope, numbers left out, so that layers count
/// together: "layers.attention" of "layers.3.attention.query". "other" of no scope.
std::string component_of(const std::string& scope);

/// Where the time of single steps of one program goes, by component.
class ComponentTimes {
 public:
  /// The plan must outlive it.
  explicit ComponentTimes(const Plan& plan);

  /// Of a step of `step_seconds` of which `workers` tell: the longest first, and last, as "idle", the time
  /// in which none ran.
  std::vector<ComponentTime> of(std::span<const LaneEvents> workers, double step_seconds) const;

 private:
  std::vector<LaunchEntry> list_;
  std::vector<std::string> components_;  ///< each once
  std::vector<size_t> component_of_;     ///< per entry of the list
};

}  // namespace fullbore
