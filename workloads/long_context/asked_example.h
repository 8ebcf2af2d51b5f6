#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace fullbore::long_context {

/// A prompt of a made-up task and what is right behind it.
struct AskedExample {
  std::string prompt;
  std::vector<std::string> answers;
  int64_t room = 32;  ///< tokens that an answer takes at most
};

/// Tokens of a text, by the model that will be asked.
using CountTokens = std::function<int64_t(const std::string&)>;

}  // namespace fullbore::long_context
