#pragma once
#include <memory>

#include "fullbore/device/device.h"

namespace fullbore::testing_support {

/// What the kernels of generated_device() have done.
struct GeneratedCounts {
  int generated = 0;  ///< kernels of generated PTX that were compiled
  int others = 0;     ///< nodes without one
};

/// A device in host memory whose kernels are generated PTX, executed on the machine of tests/support/ptx, and the
/// reference where there is none.
std::shared_ptr<Device> generated_device(GeneratedCounts* counts);

}  // namespace fullbore::testing_support
