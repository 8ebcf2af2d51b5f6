#pragma once
#include <string>
#include <vector>

#include "fullbore/device/device.h"
#include "fullbore/train/trainer.h"

namespace fullbore {

/// What a run is made with, for the first lines of its log: device and precision, batch and microbatches, optimizer and
/// schedule, and passes that are switched off.
std::vector<std::string> first_lines(const TrainingJob& job, const DeviceFacts& device);

}  // namespace fullbore
