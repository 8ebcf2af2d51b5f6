#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "fullbore/device/recorder.h"
#include "fullbore/plan/launch_list.h"

namespace fullbore {

/// All launches of one entry of a launch list in one step.
struct LaunchTime {
  /// From the first worker's begin to the last one's end; of the time in which launches ran side by
  /// side, its part. A loop's without what it holds. All of them are the time in which any ran.
  double seconds = 0;
  int64_t launches = 0;
};

/// Per entry of the list that `workers` recorded a step of.
std::vector<LaunchTime> launch_times(std::span<const LaneEvents> workers,
                                     std::span<const LaunchEntry> list);

}  // namespace fullbore
