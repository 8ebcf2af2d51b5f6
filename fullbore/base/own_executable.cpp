#include "fullbore/base/own_executable.h"

#include <cstdlib>

namespace fullbore {

const char* own_executable() {
  // A packed program is run by the dynamic loader that lies beside it, which /proc/self/exe would name.
  const char* const launcher = std::getenv("FULLBORE_LAUNCHER");
  return launcher != nullptr && *launcher == '/' ? launcher : "/proc/self/exe";
}

}  // namespace fullbore
