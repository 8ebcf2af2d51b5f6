#include "fullbore/lab/ablation/measured_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "fullbore/base/error.h"
#include "fullbore/base/files.h"
#include "fullbore/base/seal.h"
#include "fullbore/lab/process/kept_json.h"
#include "fullbore/monitor/sample_statistics.h"

namespace fullbore {
namespace {

double number(const nlohmann::json& json, const char* name) {
  const nlohmann::json& value = json.at(name);
  return value.is_null() ? RunEvaluation::kUnknown : value.get<double>();
}

void check(const MeasuredRun& run) {
  int64_t before = -1;
  for (const int64_t turn : run.turns) {
    if (turn <= before || turn >= std::ssize(run.step_seconds))
      throw DataError("a turn begins at a step that there is not");
    before = turn;
  }
  for (const double seconds : run.step_seconds)
    if (!std::isfinite(seconds) || seconds < 0) throw DataError("a step took no time");
}

}  // namespace

double MeasuredRun::seconds_until(int64_t step) const {
  const auto count = std::clamp<int64_t>(step, 0, std::ssize(step_seconds));
  return std::accumulate(step_seconds.begin(), step_seconds.begin() + count, 0.0);
}

double MeasuredRun::median_step_seconds() const {
  const std::vector<double> medians = turn_medians(step_seconds, turns);
  if (!medians.empty()) return median(medians);
  return step_seconds.size() > 1 ? median(std::span(step_seconds).subspan(1)) : 0;
}

MeasuredRun measured_run(const TurnRun& run) {
  const RunOutcome& outcome = run.result.outcome;
  MeasuredRun measured;
  measured.reason = run.result.reason;
  measured.ready_seconds = run.ready_seconds;
  measured.seconds_to_first_step = outcome.seconds_to_first_step;
  measured.finish_seconds = run.finish_seconds;
  measured.wall_seconds = run.result.end.seconds;
  measured.samples_per_step = run.samples_per_step();
  measured.resident_peak_bytes = std::max(run.resident_peak_bytes, outcome.resident_peak_bytes);
  measured.planned_peak_bytes = outcome.planned_peak_bytes;
  if (run.joules_samples > 0) measured.joules_per_sample = run.joules / run.joules_samples;
  measured.step_seconds = run.step_seconds;
  measured.turns = run.turns;
  measured.evaluations = outcome.evaluations;
  measured.tokens_per_step = outcome.tokens_per_step;
  return measured;
}

std::vector<std::string> measured_run_settings() {
  return {"train.checkpoint_interval=0", "train.keep_checkpoints=1", "train.background_saves=false",
          "train.early_stopping=0",      "log.tensorboard=false",    "log.prometheus_port=0"};
}

Status write_measured_run(const std::string& path, const MeasuredRun& run) {
  auto evaluations = nlohmann::ordered_json::array();
  for (const RunEvaluation& each : run.evaluations) {
    auto metrics = nlohmann::ordered_json::object();
    for (const auto& [name, value] : each.metrics) metrics[name] = value;
    evaluations.push_back({{"step", each.step}, {"seconds", each.seconds}, {"metrics", metrics}});
  }
  const nlohmann::ordered_json json = {{"reason", run.reason},
                                       {"ready_seconds", run.ready_seconds},
                                       {"seconds_to_first_step", run.seconds_to_first_step},
                                       {"finish_seconds", run.finish_seconds},
                                       {"wall_seconds", run.wall_seconds},
                                       {"tokens_per_step", run.tokens_per_step},
                                       {"samples_per_step", run.samples_per_step},
                                       {"joules_per_sample", run.joules_per_sample},
                                       {"resident_peak_bytes", run.resident_peak_bytes},
                                       {"planned_peak_bytes", run.planned_peak_bytes},
                                       {"step_seconds", run.step_seconds},
                                       {"turns", run.turns},
                                       {"evaluations", evaluations}};
  return write_file_atomically(
      path, seal_json(json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)));
}

Result<MeasuredRun> parse_measured_run(const std::string& text, const std::string& path) {
  const Result<nlohmann::json> parsed = parse_kept_json(text, path);
  if (!parsed.ok()) return Failure{parsed.error()};
  try {
    const nlohmann::json& json = parsed.value();
    MeasuredRun run;
    run.reason = json.at("reason").get<std::string>();
    run.ready_seconds = number(json, "ready_seconds");
    run.seconds_to_first_step = number(json, "seconds_to_first_step");
    run.finish_seconds = number(json, "finish_seconds");
    run.wall_seconds = number(json, "wall_seconds");
    run.tokens_per_step = number(json, "tokens_per_step");
    run.samples_per_step = number(json, "samples_per_step");
    run.joules_per_sample = number(json, "joules_per_sample");
    run.resident_peak_bytes = json.at("resident_peak_bytes").get<int64_t>();
    run.planned_peak_bytes = json.at("planned_peak_bytes").get<int64_t>();
    run.step_seconds = json.at("step_seconds").get<std::vector<double>>();
    run.turns = json.at("turns").get<std::vector<int64_t>>();
    for (const nlohmann::json& each : json.at("evaluations")) {
      RunEvaluation& evaluation = run.evaluations.emplace_back();
      evaluation.step = each.at("step").get<int64_t>();
      evaluation.seconds = number(each, "seconds");
      for (const auto& [name, value] : each.at("metrics").items())
        evaluation.metrics.emplace_back(
            name, value.is_null() ? RunEvaluation::kUnknown : value.get<double>());
    }
    check(run);
    return run;
  } catch (const nlohmann::json::exception& error) {
    return Failure{fmt::format("{}: {}", path, error.what())};
  } catch (const DataError& error) {
    return Failure{fmt::format("{}: {}", path, error.what())};
  }
}

Result<MeasuredRun> read_measured_run(const std::string& path) {
  const Result<std::string> text = read_file(path);
  if (!text.ok()) return Failure{text.error()};
  return parse_measured_run(text.value(), path);
}

}  // namespace fullbore
