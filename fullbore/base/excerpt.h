#pragma once
#include <string>
#include <string_view>

namespace fullbore {

/// Text of a stranger for a message: at most `most_bytes` of it, "..." where it was longer. Control characters and
/// bytes that are no UTF-8 become \xNN, so that a terminal obeys none of them.
std::string excerpt(std::string_view text, size_t most_bytes = 60);

}  // namespace fullbore
