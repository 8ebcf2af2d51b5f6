#pragma once
#include <string>

namespace fullbore {

/// What this process was linked from, as hexadecimal digits: a hash of the build ids of the executable
/// and of every library in it. Another version or build of any of them gives another. "" where one has
/// no build id, so that it cannot be told.
const std::string& build_id();

}  // namespace fullbore
