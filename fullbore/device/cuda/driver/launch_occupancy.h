#pragma once
#include "fullbore/device/cuda/cuda_kernel.h"
#include "fullbore/device/cuda/driver/context.h"
#include "fullbore/device/occupancy.h"

namespace fullbore::cuda {

/// How many blocks of a launch a multiprocessor of the card holds at once, as the driver tells, and what it is that they
/// take most of. Loads the launch's module unless it is there. DeviceError: it cannot be loaded.
Occupancy launch_occupancy(Context& context, const Launch& launch);

}  // namespace fullbore::cuda
