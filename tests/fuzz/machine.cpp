// Any bytes as the measured peaks that the cache keeps: nothing, or a machine that reports can divide by.
#include "fullbore/monitor/machine.h"

#include <cmath>
#include <optional>
#include <string_view>

#include "tests/fuzz/memory_file.h"

using namespace fullbore;
using fullbore::testing::require;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::optional<Machine> machine = parse_machine({reinterpret_cast<const char*>(data), size});
  if (!machine) return 0;
  for (const double peak :
       {machine->peaks.fp32_flops, machine->peaks.bf16_flops, machine->peaks.bytes_per_second})
    require(peak > 0 && std::isfinite(peak));
  require(machine->peaks.tf32_flops >= 0 && std::isfinite(machine->peaks.tf32_flops));
  const Machine higher = higher_peaks(*machine, *machine);
  require(higher.peaks.fp32_flops == machine->peaks.fp32_flops);
  return 0;
}
