#include <fmt/format.h>

#include "fullbore/device/device.h"
#include "fullbore/base/error.h"
#include "fullbore/base/text.h"

namespace fullbore {

std::unique_ptr<Backend> make_backend(const std::string& name) {
  if (name == "cpu") return make_cpu_backend();
  if (name == "null") return make_null_backend();
  throw UsageError(fmt::format("no backend '{}'; there are 'cpu' and 'null'.{}", name,
                               did_you_mean(name, {"cpu", "null"})));
}

}  // namespace fullbore
