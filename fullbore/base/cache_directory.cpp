#include "fullbore/base/cache_directory.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>

namespace fullbore {
namespace {

/// An empty variable counts as unset, as the XDG base directory specification asks.
const char* variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : nullptr;
}

}  // namespace

std::string cache_directory() {
  if (const char* own = variable("FULLBORE_CACHE")) return own;
  if (const char* shared = variable("XDG_CACHE_HOME")) return std::string(shared) + "/fullbore";
  if (const char* home = variable("HOME")) return std::string(home) + "/.cache/fullbore";
  return fmt::format("/tmp/fullbore-{}", getuid());
}

std::string compile_cache_directory(std::string_view what) {
  const char* const setting = variable("FULLBORE_COMPILE_CACHE");
  if (setting != nullptr && std::string_view(setting) == "off") return "";
  return fmt::format("{}/{}", cache_directory(), what);
}

}  // namespace fullbore
