// Any bytes as what `longcontext` commands wrote and as answers of other models: refused with the file's name, or
// figures that can be drawn, and answers that differ in their ids.
#include "workloads/long_context/measurements.h"

#include <algorithm>
#include <string>

#include "tests/fuzz/memory_file.h"

using namespace fullbore;
using namespace fullbore::long_context;
using fullbore::testing::MemoryFile;
using fullbore::testing::require;

namespace {

void check_curve(const std::string& path) {
  Result<AccuracyCurve> read = read_accuracy_curve(path);
  if (!read.ok()) return require(read.error().starts_with(path));
  AccuracyCurve curve = std::move(read).value();
  require(!curve.accuracies.empty());
  for (const LengthAccuracy& each : curve.accuracies)
    require(each.length > 0 && each.accuracy >= 0 && each.accuracy <= 1);
  // What the command does with it, which refuses lengths that were measured twice.
  std::ranges::sort(curve.accuracies, {}, &LengthAccuracy::length);
  const auto twice = std::ranges::adjacent_find(
      curve.accuracies, [](const auto& a, const auto& b) { return a.length == b.length; });
  if (twice != curve.accuracies.end()) return;
  const UsableLength usable = usable_length(curve.accuracies, 0.8);
  require(usable.length >= 0 &&
          usable.length <= static_cast<double>(curve.accuracies.back().length));
  const std::string svg = usable_length_svg({curve}, 0.8);
  require(svg.starts_with("<svg") && svg.find("</svg>") != std::string::npos);
  require(svg.find("<script") == std::string::npos);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const MemoryFile file(data, size);
  const std::string path = file.path();
  check_curve(path);
  const Result<PhaseMeasurement> phase = read_phase_measurement(path);
  if (phase.ok())
    require(phase.value().phase < 3 &&
            (!phase.value().score || (*phase.value().score >= 0 && *phase.value().score <= 1)));
  else
    require(phase.error().starts_with(path));
  const auto answers = read_needle_answers(path);
  require(answers.ok() || answers.error().starts_with(path));
  return 0;
}
