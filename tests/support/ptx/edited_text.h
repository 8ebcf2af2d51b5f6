#pragma once
#include <optional>
#include <string>

namespace fullbore::ptx {

/// The text without its n-th line that has `what` in it; none if there are fewer.
inline std::optional<std::string> without(const std::string& text, const std::string& what, int n) {
  size_t at = text.find(what);
  for (; n > 0 && at != std::string::npos; --n) at = text.find(what, at + 1);
  if (at == std::string::npos) return std::nullopt;
  const size_t begin = text.rfind('\n', at) + 1, end = text.find('\n', at);
  return text.substr(0, begin) + text.substr(end + 1);
}

}  // namespace fullbore::ptx
