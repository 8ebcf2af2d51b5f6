#include "fullbore/lab/tuning/tuning_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "fullbore/base/printable.h"
#include "fullbore/base/program_name.h"
#include "fullbore/base/text.h"
#include "fullbore/lab/report_table.h"
#include "fullbore/lab/tuning/tuning_file.h"

namespace fullbore {
namespace {

std::string ratio_text(double value, const char* unit = "x") {
  return std::isfinite(value) ? fmt::format("{:.3f}{}", value, unit) : "";
}
std::string milliseconds(double seconds) {
  return std::isfinite(seconds) ? fmt::format("{:.4g}", 1000 * seconds) : "";
}
std::string mebibytes(int64_t bytes) {
  constexpr double kMebibyte = 0x1p20;
  return bytes > 0 ? fmt::format("{:.0f}", static_cast<double>(bytes) / kMebibyte) : "";
}

std::string names(const TuningPoint& point) {
  std::vector<std::string> list;
  for (const Switch& each : point) list.push_back(choice_name(each));
  return fmt::format("{}", fmt::join(list, ", "));
}

std::string speed_text(const TuningTrial& trial) {
  return fmt::format("{:.3f} times the speed (95 % interval {:.3f} to {:.3f}), {} runs of {} steps",
                     std::exp(-trial.difference), std::exp(-trial.high), std::exp(-trial.low),
                     trial.runs, trial.steps);
}

std::string base_name(const Tuning& tuning) {
  return tuning.start.empty() ? "as configured" : names(tuning.start);
}

ReportTable verdicts(const Tuning& tuning) {
  ReportTable table{.title = "Candidates, each against what was taken before it",
                    .header = {"candidate", "heats", "speed", "from", "to", "verdict"},
                    .rows = {}};
  for (const TuningRow& row : tuning.rows)
    table.rows.push_back({choice_name(row.choice), row.heats > 0 ? std::to_string(row.heats) : "",
                          ratio_text(std::exp(-row.difference)), ratio_text(std::exp(-row.high)),
                          ratio_text(std::exp(-row.low)), verdict_text(row.verdict)});
  return table;
}

ReportTable predictions(const Tuning& tuning) {
  ReportTable table{
      .title = "Predicted by the planner, and measured: ms/step, MiB resident",
      .header = {"candidate", "predicted", "ms/step", "ratio", "predicted", "resident", "ratio"},
      .rows = {}};
  const auto add = [&](const std::string& name, const TuningRow& row) {
    if (!std::isfinite(row.measured_seconds)) return;
    const double bytes =
        static_cast<double>(row.predicted_bytes) / static_cast<double>(row.resident_bytes);
    table.rows.push_back(
        {name, milliseconds(row.predicted_seconds), milliseconds(row.measured_seconds),
         ratio_text(row.predicted_seconds / row.measured_seconds, ""),
         mebibytes(row.predicted_bytes), mebibytes(row.resident_bytes), ratio_text(bytes, "")});
  };
  add(base_name(tuning), tuning.base);
  for (const TuningRow& row : tuning.rows) add(choice_name(row.choice), row);
  return table;
}

PredictionError error_of(const Tuning& tuning,
                         const std::function<Prediction(const TuningRow&)>& of) {
  std::vector<Prediction> all;
  const auto add = [&](std::string name, const TuningRow& row) {
    Prediction& each = all.emplace_back(of(row));
    each.name = std::move(name);
  };
  add(base_name(tuning), tuning.base);
  for (const TuningRow& row : tuning.rows)
    if (std::isfinite(row.measured_seconds)) add(choice_name(row.choice), row);
  return prediction_error(all);
}

std::string error_text(const char* what, const PredictionError& error) {
  if (error.count == 0) return "";
  std::string text =
      fmt::format("{} predicted off by {:.0f} % (median of {}), at worst {:.0f} % ({})", what,
                  100 * error.median, error.count, 100 * error.worst, error.worst_name);
  if (std::isfinite(error.rank_correlation))
    text += fmt::format("; rank correlation {:.2f}", error.rank_correlation);
  return text + ".";
}

std::string headline(const Tuning& tuning) {
  return fmt::format("{} on {}: {} candidates, {}.", tuning.config, tuning.machine,
                     tuning.rows.size(), duration_text(tuning.seconds));
}

/// What stands below the tables, a paragraph each.
std::vector<std::string> notes(const Tuning& tuning) {
  std::vector<std::string> all;
  if (!tuning.start_reason.empty())
    all.push_back(fmt::format("As configured it does not fit: {} All is compared with {}.",
                              tuning.start_reason, names(tuning.start)));
  for (const TuningRow& row : tuning.rows)
    if (!row.reason.empty())
      all.push_back(fmt::format("{}: {}: {}", choice_name(row.choice), verdict_text(row.verdict),
                                row.reason));
  if (tuning.out_of_time)
    all.emplace_back("Time was out before all candidates had their turn: --minutes.");
  all.push_back(error_text("Step time is", step_prediction_error(tuning)));
  all.push_back(error_text("Resident memory is", memory_prediction_error(tuning)));
  for (const TuningTrial& trial : tuning.trials) {
    if (trial.runs > 0)
      all.push_back(fmt::format("Confirmed beside {}: {}: {}; quality: {}.", base_name(tuning),
                                names(trial.point), speed_text(trial), trial.quality));
    if (!trial.reason.empty())
      all.push_back(fmt::format("Declined: {}: {}.", names(trial.point), trial.reason));
  }
  if (const double step = tuning_payback_step(tuning); std::isfinite(step))
    all.push_back(fmt::format("Tuning took {} and has paid for itself after step {:.0f}.",
                              duration_text(tuning.seconds), step));
  all.push_back(tuning.winner()
                    ? fmt::format("Tuned: {}.", names(tuning.taken))
                    : fmt::format("Nothing is shown to be faster: {} stays.", base_name(tuning)));
  return all;
}

}  // namespace

double tuning_payback_step(const Tuning& tuning) {
  const TuningTrial* const winner = tuning.winner();
  if (winner == nullptr) return TuningRow::kUnknown;
  const double gain = tuning.base.measured_seconds * (1 - std::exp(winner->difference));
  return std::ceil(tuning.seconds / gain);
}

PredictionError step_prediction_error(const Tuning& tuning) {
  return error_of(tuning, [](const TuningRow& row) {
    return Prediction{
        .name = "", .predicted = row.predicted_seconds, .measured = row.measured_seconds};
  });
}

PredictionError memory_prediction_error(const Tuning& tuning) {
  return error_of(tuning, [](const TuningRow& row) {
    return Prediction{.name = "",
                      .predicted = static_cast<double>(row.predicted_bytes),
                      .measured = static_cast<double>(row.resident_bytes)};
  });
}

std::string tuning_text(const Tuning& tuning) {
  std::string text = wrapped_text(headline(tuning)) + '\n' + table_text(verdicts(tuning)) + '\n' +
                     table_text(predictions(tuning));
  for (const std::string& note : notes(tuning))
    if (!note.empty()) text += '\n' + wrapped_text(note);
  return text;
}

std::string tuning_markdown(const Tuning& tuning) {
  std::string text = "# Tuning\n\n" + printable_name(headline(tuning)) + "\n\n" +
                     table_markdown(verdicts(tuning)) + '\n' + table_markdown(predictions(tuning));
  for (const std::string& note : notes(tuning))
    if (!note.empty()) text += '\n' + printable_name(note) + '\n';
  return text;
}

nlohmann::ordered_json tuning_report_json(const Tuning& tuning) {
  nlohmann::ordered_json json = to_json(tuning);
  const auto add = [&](const char* key, const PredictionError& error) {
    json[key] = {{"count", error.count},
                 {"median", error.median},
                 {"worst", error.worst},
                 {"worst_name", error.worst_name},
                 {"rank_correlation", error.rank_correlation}};
  };
  json["payback_step"] = tuning_payback_step(tuning);
  add("step_prediction_error", step_prediction_error(tuning));
  add("memory_prediction_error", memory_prediction_error(tuning));
  return json;
}

std::string tuned_yaml(const Tuning& tuning, const TuningRequest& request) {
  std::string yaml;
  const auto say = [&](const std::string& text) {
    yaml += fmt::format("# {}\n", printable_name(text));
  };
  say(fmt::format("Tuned by `{} lab tune {}`, {}.", program_name(), request.config, tuning.when));
  say(fmt::format("Machine: {}.", tuning.machine));
  const TuningTrial* winner = tuning.winner();
  if (winner) {
    say(fmt::format("In place of the configuration: {}.", names(tuning.taken)));
    say(fmt::format("Claim: {} as {};", speed_text(*winner), base_name(tuning)));
    say(fmt::format("quality: {}. `{} lab gate` has the last word.", winner->quality,
                    program_name()));
  } else {
    // What nobody has shown to be faster stays as it is.
    say(tuning.start.empty()
            ? "Nothing is shown to be faster: this is the configuration as it was."
            : fmt::format("Made to fit in memory by {}; nothing is shown to be faster.",
                          names(tuning.start)));
  }
  std::vector<std::string> settings = request.overrides;
  for (std::string& each : point_settings(tuning.taken, request.settings))
    settings.push_back(std::move(each));
  return yaml + config_yaml(load_config(request.config, settings));
}

}  // namespace fullbore
