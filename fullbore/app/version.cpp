#include "fullbore/app/version.h"

#include <fmt/format.h>

#include "fullbore/device/registry.h"

#if !defined(FB_VERSION) || !defined(FB_COMMIT) || !defined(FB_BUILD_TYPE)
#error "the build gives the project's version, the commit and the type of build"
#endif

namespace fullbore {

std::string version() { return FB_VERSION; }

std::string version_text() {
#ifdef __clang__
  const std::string compiler = fmt::format("clang {}", __clang_version__);
#else
  const std::string compiler = fmt::format("gcc {}", __VERSION__);
#endif
  std::string text = fmt::format("fullbore {}\n", version());
  text += fmt::format("commit    {}\n", FB_COMMIT);
  text += fmt::format("built     {}, {}\n", FB_BUILD_TYPE, compiler);
  for (const Library& library : device_libraries())
    text += fmt::format("{:<9} {}\n", library.name, library.version);
  text.pop_back();
  return text;
}

}  // namespace fullbore
