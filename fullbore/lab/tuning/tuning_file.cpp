#include "fullbore/lab/tuning/tuning_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "fullbore/base/build_id.h"
#include "fullbore/base/error.h"
#include "fullbore/base/files.h"
#include "fullbore/base/hash.h"
#include "fullbore/lab/process/kept_json.h"
#include "fullbore/lab/tuning/tuning_search.h"

namespace fullbore {
namespace {

constexpr std::array<std::pair<TuningVerdict, std::string_view>, 12> kVerdicts = {
    {{TuningVerdict::open, "open"},
     {TuningVerdict::taken, "taken"},
     {TuningVerdict::slower, "declined: slower"},
     {TuningVerdict::no_difference, "declined: no difference"},
     {TuningVerdict::same_program, "same program"},
     {TuningVerdict::does_not_fit, "does not fit"},
     {TuningVerdict::refused, "refused"},
     {TuningVerdict::failed, "failed"},
     {TuningVerdict::not_allowed, "declined: numbers"},
     {TuningVerdict::worse, "declined: quality"},
     {TuningVerdict::not_confirmed, "declined: not confirmed"},
     {TuningVerdict::no_time, "no time"}}};

nlohmann::ordered_json number(double value) {
  return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json();
}
double number_of(const nlohmann::json& json, const char* key) {
  const nlohmann::json& value = json.at(key);
  return value.is_null() ? TuningRow::kUnknown : value.get<double>();
}

/// As speed, for people; as logarithms too, for what is read again.
void add_difference(nlohmann::ordered_json& json, double difference, double low, double high) {
  json["speed"] = number(std::exp(-difference));
  json["speed_low"] = number(std::exp(-high));
  json["speed_high"] = number(std::exp(-low));
  json["log_time"] = {
      {"difference", number(difference)}, {"low", number(low)}, {"high", number(high)}};
}

template <class Figures>
void read_difference(const nlohmann::json& json, Figures& figures) {
  const nlohmann::json& time = json.at("log_time");
  figures.difference = number_of(time, "difference");
  figures.low = number_of(time, "low");
  figures.high = number_of(time, "high");
}

nlohmann::ordered_json to_json(const Switch& choice) {
  return {{"name", choice_name(choice)},
          {"switch", choice.name},
          {"key", choice.key},
          {"value", choice.value},
          {"configured", choice.off}};
}
Switch switch_of(const nlohmann::json& json) {
  return {json.at("switch").get<std::string>(), json.at("key").get<std::string>(),
          json.at("value").get<std::string>(), json.at("configured").get<std::string>()};
}

nlohmann::ordered_json to_json(const TuningPoint& point) {
  auto json = nlohmann::ordered_json::array();
  for (const Switch& each : point) json.push_back(to_json(each));
  return json;
}
TuningPoint point_of(const nlohmann::json& json) {
  TuningPoint point;
  for (const nlohmann::json& each : json) point.push_back(switch_of(each));
  return point;
}

nlohmann::ordered_json to_json(const TuningRow& row) {
  nlohmann::ordered_json json = to_json(row.choice);
  json["verdict"] = verdict_text(row.verdict);
  json["reason"] = row.reason;
  json["heats"] = row.heats;
  add_difference(json, row.difference, row.low, row.high);
  json["predicted_step_seconds"] = number(row.predicted_seconds);
  json["step_seconds"] = number(row.measured_seconds);
  json["predicted_bytes"] = row.predicted_bytes;
  json["resident_bytes"] = row.resident_bytes;
  return json;
}
TuningRow row_of(const nlohmann::json& json) {
  TuningRow row;
  row.choice = switch_of(json);
  const auto verdict = json.at("verdict").get<std::string>();
  const auto* found =
      std::ranges::find(kVerdicts, verdict, &std::pair<TuningVerdict, std::string_view>::second);
  if (found == kVerdicts.end()) throw DataError("there is no such verdict");
  row.verdict = found->first;
  row.reason = json.at("reason").get<std::string>();
  row.heats = json.at("heats").get<int64_t>();
  read_difference(json, row);
  row.predicted_seconds = number_of(json, "predicted_step_seconds");
  row.measured_seconds = number_of(json, "step_seconds");
  row.predicted_bytes = json.at("predicted_bytes").get<int64_t>();
  row.resident_bytes = json.at("resident_bytes").get<int64_t>();
  return row;
}

nlohmann::ordered_json to_json(const TuningTrial& trial) {
  nlohmann::ordered_json json = {{"on", to_json(trial.point)},
                                 {"reason", trial.reason},
                                 {"runs", trial.runs},
                                 {"steps", trial.steps},
                                 {"quality", trial.quality}};
  add_difference(json, trial.difference, trial.low, trial.high);
  return json;
}
TuningTrial trial_of(const nlohmann::json& json) {
  TuningTrial trial;
  trial.point = point_of(json.at("on"));
  trial.reason = json.at("reason").get<std::string>();
  trial.runs = json.at("runs").get<int64_t>();
  trial.steps = json.at("steps").get<int64_t>();
  trial.quality = json.at("quality").get<std::string>();
  read_difference(json, trial);
  return trial;
}

std::string path_of(const std::string& folder, const std::string& identity) {
  return fmt::format("{}/{}.json", folder, hash_hex(hash_text(identity)));
}

/// Every choice is one that would be measured: a file that others may have written sets nothing else.
bool chooses_from(const Tuning& tuning, const std::vector<Coordinate>& space,
                  const std::vector<TuningPoint>& ladder) {
  if (!tuning.start.empty() && std::ranges::find(ladder, tuning.start) == ladder.end())
    return false;
  return std::ranges::all_of(tuning.taken, [&](const Switch& each) {
    return std::ranges::find(tuning.start, each) != tuning.start.end() ||
           std::ranges::any_of(space, [&](const Coordinate& coordinate) {
             return std::ranges::find(coordinate.choices, each) != coordinate.choices.end();
           });
  });
}

}  // namespace

std::string verdict_text(TuningVerdict verdict) {
  return std::string(
      std::ranges::find(kVerdicts, verdict, &std::pair<TuningVerdict, std::string_view>::first)
          ->second);
}

const TuningTrial* Tuning::winner() const {
  const auto found = std::ranges::find_if(
      trials, [&](const TuningTrial& each) { return each.reason.empty() && each.point == taken; });
  return found == trials.end() ? nullptr : &*found;
}

nlohmann::ordered_json to_json(const Tuning& tuning) {
  auto rows = nlohmann::ordered_json::array();
  for (const TuningRow& each : tuning.rows) rows.push_back(to_json(each));
  auto trials = nlohmann::ordered_json::array();
  for (const TuningTrial& each : tuning.trials) trials.push_back(to_json(each));
  return {{"identity", tuning.identity},
          {"machine", tuning.machine},
          {"when", tuning.when},
          {"config", tuning.config},
          {"seconds", tuning.seconds},
          {"out_of_time", tuning.out_of_time},
          {"start", to_json(tuning.start)},
          {"start_reason", tuning.start_reason},
          {"taken", to_json(tuning.taken)},
          {"confirmation", std::move(trials)},
          {"base", to_json(tuning.base)},
          {"candidates", std::move(rows)}};
}

Result<Tuning> parse_tuning(const std::string& text, const std::string& path) {
  const Result<nlohmann::json> parsed = parse_kept_json(text, path);
  if (!parsed.ok()) return Failure{parsed.error()};
  try {
    const nlohmann::json& json = parsed.value();
    Tuning tuning;
    tuning.identity = json.at("identity").get<std::string>();
    tuning.machine = json.at("machine").get<std::string>();
    tuning.when = json.at("when").get<std::string>();
    tuning.config = json.at("config").get<std::string>();
    tuning.seconds = json.at("seconds").get<double>();
    tuning.out_of_time = json.at("out_of_time").get<bool>();
    tuning.start = point_of(json.at("start"));
    tuning.start_reason = json.at("start_reason").get<std::string>();
    tuning.taken = point_of(json.at("taken"));
    for (const nlohmann::json& each : json.at("confirmation"))
      tuning.trials.push_back(trial_of(each));
    tuning.base = row_of(json.at("base"));
    for (const nlohmann::json& each : json.at("candidates")) tuning.rows.push_back(row_of(each));
    return tuning;
  } catch (const nlohmann::json::exception& error) {
    return Failure{fmt::format("{}: {}", path, error.what())};
  } catch (const DataError& error) {
    return Failure{fmt::format("{}: {}", path, error.what())};
  }
}

std::string tuning_identity(const Config& config, const TuningScope& scope, TuningQuality quality,
                            const std::string& machine) {
  // A run's own name, seed and folder, and what is written of it, do not change how fast it is.
  Config job = config;
  job.run = {};
  job.log = {};
  job.engine.cache = true;
  job.engine.cache_dir.clear();
  // Data have relative names, and a vocabulary that a program depends on.
  std::error_code error;
  const std::string here = std::filesystem::current_path(error).string();
  return hash_hex(
      hash_text(fmt::format("{}\n{}\n{}\n{}\n{}\n{}\n{} {}", machine, build_id(), here,
                            config_yaml(job), fmt::join(scope.switches, "\n"), scope.batch_sizes,
                            static_cast<int>(quality), scope.processors)));
}

std::optional<Tuning> kept_tuning(const std::string& folder, const std::string& identity,
                                  const Config& config, const std::vector<Coordinate>& space,
                                  const std::function<void(const std::string&)>& warn) {
  const std::string path = path_of(folder, identity);
  FileStatus status;
  if (system_files().status(path, status) != 0) return std::nullopt;
  const Result<std::string> text = read_file(path);
  Result<Tuning> kept =
      text.ok() ? parse_tuning(text.value(), path) : Result<Tuning>(Failure{text.error()});
  std::string problem;
  if (!kept.ok())
    problem = kept.error();
  else if (kept.value().identity != identity)
    problem = path + ": it is of another job or machine";
  else if (!chooses_from(kept.value(), space, memory_ladder(config)))
    problem = path + ": it chooses what is not to be tuned";
  if (problem.empty()) return std::move(kept).value();
  warn(fmt::format("measured anew, for what was kept of an earlier tuning is no use: {}", problem));
  return std::nullopt;
}

void keep_tuning(const std::string& folder, const Tuning& tuning,
                 const std::function<void(const std::string&)>& warn) {
  const Status status = write_kept_json(path_of(folder, tuning.identity), to_json(tuning));
  if (!status.ok())
    warn(fmt::format("the result is not kept for another time: {}", status.error()));
}

}  // namespace fullbore
