// Any JSON as the times of steps that a summary holds: refused, or a histogram that reads back as it was written.
#include "fullbore/monitor/step_histogram.h"

#include <nlohmann/json.hpp>
#include <string_view>

#include "fullbore/base/json.h"
#include "tests/fuzz/memory_file.h"

using namespace fullbore;
using fullbore::testing::require;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const Result<nlohmann::json> json =
      parse_json(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!json.ok()) return 0;
  const Result<StepHistogram> read = StepHistogram::from_json(json.value());
  if (!read.ok()) return 0;
  const StepHistogram& histogram = read.value();
  const nlohmann::json written = parse_json(histogram.to_json().dump()).take_or_throw();
  require(StepHistogram::from_json(written).take_or_throw().to_json() == histogram.to_json());
  if (histogram.steps() > 0) require(histogram.quantile(0) <= histogram.quantile(1));
  return 0;
}
