// Any bytes as a file of /proc or /sys, and as a sensors.csv: nothing, or numbers that can be reckoned with.
#include <cmath>
#include <string_view>

#include "fullbore/monitor/sensor_file.h"
#include "fullbore/monitor/sensor_text.h"
#include "tests/fuzz/memory_file.h"

using namespace fullbore;
using fullbore::testing::MemoryFile;
using fullbore::testing::require;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto count = parse_count(text)) require(*count >= 0);
  if (const auto celsius = parse_celsius(text)) require(std::isfinite(*celsius));
  for (const std::string_view key : {"MemTotal", "VmRSS", "throttled_usec"})
    if (const auto number = parse_keyed(text, key)) require(*number >= 0);
  if (const auto pressure = parse_pressure(text)) {
    require(pressure->some >= 0 && pressure->some <= 100);
    require(!pressure->full || (*pressure->full >= 0 && *pressure->full <= 100));
  }
  if (const auto times = parse_processor_times(text)) {
    require(times->runnable >= 0 && times->all.busy >= 0 && times->all.busy <= times->all.total);
    for (const ProcessorTimes::Each& each : times->each)
      require(each.number >= 0 && each.ticks.busy >= 0 && each.ticks.busy <= each.ticks.total);
  }
  if (const auto process = parse_process_times(text))
    require(process->ticks >= 0 && process->threads >= 0);

  const MemoryFile memory(data, size);
  const Result<SensorTable> table = read_sensor_file(memory.path());
  if (!table.ok()) {
    require(table.error().starts_with(memory.path()));
    return 0;
  }
  const std::vector<std::string>& titles = table.value().columns.titles();
  require(titles.size() <= SensorColumns::kMost);
  for (const SensorRow& row : table.value().rows) {
    require(row.values.size() == titles.size() && row.step >= 0 && std::isfinite(row.seconds));
    for (const double value : row.values) require(std::isnan(value) || std::isfinite(value));
  }
  return 0;
}
