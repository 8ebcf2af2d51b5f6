#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "fullbore/lab/tuning/prediction_error.h"
#include "fullbore/lab/tuning/tuning_bench.h"

namespace fullbore {

/// The planner's predictions beside what was measured: of base and candidates that ran.
PredictionError step_prediction_error(const Tuning& tuning);
PredictionError memory_prediction_error(const Tuning& tuning);

/// After how many steps of the configuration the tuned one has made up for the time that tuning took; NaN where nothing
/// was taken.
double tuning_payback_step(const Tuning& tuning);

/// For 80 columns: what was found, candidates with their verdicts, predictions beside measurements.
std::string tuning_text(const Tuning& tuning);
std::string tuning_markdown(const Tuning& tuning);
/// The tuning with both errors of prediction and the step from which on it pays.
nlohmann::ordered_json tuning_report_json(const Tuning& tuning);

/// The tuned configuration as a file: every key, and above them what is claimed of it, by which runs.
std::string tuned_yaml(const Tuning& tuning, const TuningRequest& request);

}  // namespace fullbore
