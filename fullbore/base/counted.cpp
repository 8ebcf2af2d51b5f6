#include "fullbore/base/counted.h"

#include <fmt/format.h>

namespace fullbore {

std::string counted(int64_t count, const std::string& word) {
  const char* const ending = count == 1 ? "" : word.ends_with("ch") ? "es" : "s";
  return fmt::format("{} {}{}", count, word, ending);
}

}  // namespace fullbore
