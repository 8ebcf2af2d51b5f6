#include "tests/support/paths.h"

#include <cstdlib>

namespace fullbore::testing {

// As functions: constants of other sources are made of them before main() begins.
const std::string& source_folder() {
  static const char* const copy = std::getenv("FULLBORE_TEST_SOURCES");
  static const std::string path = copy != nullptr ? copy : FB_SOURCE_DIR;
  return path;
}

const std::string& shared_folder() {
  static const std::string path = FB_SHARED_DIR;
  return path;
}

namespace {

std::string& command() {
  static std::string path = FB_BINARY;
  return path;
}

}  // namespace

const std::string& command_path() { return command(); }

void use_command(const std::string& name) {
  std::string& path = command();
  path = path.substr(0, path.rfind('/') + 1) + name;
}

}  // namespace fullbore::testing
