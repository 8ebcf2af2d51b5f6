#pragma once
#include <span>
#include <string>
#include <vector>

#include "fullbore/device/device.h"
#include "fullbore/train/trainer.h"

namespace fullbore {

/// What a run is made with, for the first lines of its log: device and precision, batch and microbatches, optimizer and
/// schedule, and passes that are switched off.
std::vector<std::string> first_lines(const TrainingJob& job, const DeviceFacts& device);

/// A warning for each of the first nodes that have no kernel of their own, and one for all others.
std::vector<std::string> fallback_lines(std::span<const KernelFallback> fallbacks);

}  // namespace fullbore
