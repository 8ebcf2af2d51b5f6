#pragma once
#include <cstdint>
#include <string>

namespace fullbore {

/// "1 seed", "2 seeds", "2 switches": of words that take an s, or es behind ch.
std::string counted(int64_t count, const std::string& word);

}  // namespace fullbore
