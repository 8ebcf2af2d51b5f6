// Any bytes as a wire: what is read is written as the same bytes, or refused by name.
#include <string_view>

#include "tests/fuzz/memory_file.h"
#include "workloads/latentwire/wire_file.h"

using namespace fullbore;
using namespace fullbore::latentwire;
using fullbore::testing::require;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const Result<Wire> wire = parse_wire(bytes, "input");
  if (!wire.ok()) {
    require(wire.error().starts_with("input: "));
    return 0;
  }
  require(wire_bytes(wire.value()) == bytes);
  require(static_cast<int64_t>(wire.value().z().size()) == wire.value().form.numbers());
  return 0;
}
