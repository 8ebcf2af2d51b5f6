#pragma once
#include <string>

namespace fullbore {

/// "0.1.0"
std::string version();
/// The version, and on lines of their own what it was built from, by which compiler, with which
/// libraries: what a bug report needs.
std::string version_text();

}  // namespace fullbore
