#pragma once
#include <map>
#include <optional>
#include <string>

#include "fullbore/base/result.h"
#include "workloads/long_context/accuracy.h"
#include "workloads/long_context/usable_chart.h"

namespace fullbore::long_context {

/// What `fullbore longcontext` and the models that it asks have written, read back. Failures name the file.

/// A model's accuracies, as `longcontext niah --json` and `ruler --json` write them; lengths in the file's order.
Result<AccuracyCurve> read_accuracy_curve(const std::string& path);

/// What a measurement says of the phases of accuracy.h.
struct PhaseMeasurement {
  std::string model;
  size_t phase = 0;  ///< from 0
  Gate gate = Gate::not_measured;
  std::optional<double> score = {};  ///< of InfiniteBench, in [0, 1]
};
/// Of niah, longbench or infinitebench, by --json.
Result<PhaseMeasurement> read_phase_measurement(const std::string& path);

/// Answers to the prompts of needle_grid.h by their ids: JSON lines {"id": ..., "answer": ...}.
Result<std::map<std::string, std::string>> read_needle_answers(const std::string& path);

}  // namespace fullbore::long_context
