#pragma once
#include <vector>

#include "fullbore/device/registry.h"

namespace fullbore::cpu {

/// As loaded.
std::vector<Library> libraries();

}  // namespace fullbore::cpu
