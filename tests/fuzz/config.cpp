// Any bytes as a config: a UsageError, or a config that prints and reads back to itself.
#include <string_view>

#include "fullbore/base/error.h"
#include "fullbore/train/config.h"
#include "tests/fuzz/memory_file.h"

using namespace fullbore;
using fullbore::testing::require;

namespace {

void check(std::string_view yaml, std::span<const std::string> overrides) {
  try {
    const Config config = parse_config(yaml, "fuzz.yaml", overrides);
    require(parse_config(config_yaml(config), "again.yaml") == config);
  } catch (const UsageError& error) {
    require(std::string_view(error.what()).starts_with("config: "));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  check(bytes, {});
  const std::string override_text(bytes.substr(0, bytes.find('\n')));
  check("", std::span(&override_text, 1));
  return 0;
}
