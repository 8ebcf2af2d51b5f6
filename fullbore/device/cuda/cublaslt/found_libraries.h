#pragma once
#include <vector>

#include "fullbore/device/registry.h"

namespace fullbore::cuda {

/// cuBLASLt, whether it is found or not: tried with the machine's first card, if there is one.
std::vector<fullbore::Library> found_libraries();

}  // namespace fullbore::cuda
