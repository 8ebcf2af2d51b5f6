#include "fullbore/lab/tuning/tuning_bench.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "fullbore/base/error.h"
#include "fullbore/base/files.h"
#include "fullbore/base/hash.h"
#include "fullbore/lab/process/kept_json.h"

namespace fullbore {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

std::vector<std::string> settings_of(const TuningRequest& request, const TuningPoint& point) {
  std::vector<std::string> settings = request.overrides;
  for (std::string& each : point_settings(point, request.settings))
    settings.push_back(std::move(each));
  return settings;
}

}  // namespace

Result<HeatRecord> parse_heat_record(const std::string& text, const std::string& path) {
  const Result<nlohmann::json> parsed = parse_kept_json(text, path);
  if (!parsed.ok()) return Failure{parsed.error()};
  try {
    const nlohmann::json& json = parsed.value();
    HeatRecord record{json.at("points").get<std::string>(), json.at("runs").get<int64_t>(),
                      json.at("seconds").get<double>()};
    if (!std::isfinite(record.seconds) || record.seconds < 0 || record.runs < 1)
      return Failure{fmt::format("{}: a heat of no runs, or one that took no time", path)};
    return record;
  } catch (const nlohmann::json::exception& error) {
    return Failure{fmt::format("{}: {}", path, error.what())};
  }
}

ProcessBench::ProcessBench(const TuningRequest& request, const StopRequest& stop)
    : request_(request), stop_(stop) {
  // What is made and removed in them stays in this folder, whoever made it.
  for (const char* name : {"/heats", "/work"})
    make_own_folder(request_.folder + name).take_or_throw();
}

double ProcessBench::seconds() const {
  return kept_seconds_ + std::chrono::duration<double>(Clock::now() - begin_).count();
}

ArmPlan ProcessBench::plan(const TuningPoint& point) {
  ArmPlan plan = plan_arm(request_.config, settings_of(request_, point),
                          request_.folder + "/work/plan.json", stop_);
  refuse_full_disk(plan.refused);
  return plan;
}

std::vector<MeasuredRun> ProcessBench::kept(const std::string& path, const std::string& points,
                                            size_t runs) {
  const Result<std::string> text = read_file(path + ".json");
  if (!text.ok()) return {};
  const Result<HeatRecord> record = parse_heat_record(text.value(), path);
  if (!record.ok() || record.value().points != points ||
      record.value().runs != static_cast<int64_t>(runs))
    return {};
  std::vector<MeasuredRun> measured;
  for (size_t i = 0; i < runs; ++i) {
    Result<MeasuredRun> run = read_measured_run(fmt::format("{}-{}.json", path, i));
    if (!run.ok()) return {};
    measured.push_back(std::move(run).value());
  }
  kept_seconds_ += record.value().seconds;
  return measured;
}

std::vector<MeasuredRun> ProcessBench::heat(const std::vector<TuningPoint>& points, int64_t steps,
                                            const HeatLimits& limits) {
  const Clock::time_point begin = Clock::now();
  const int64_t number = heats_++;
  const std::string path = fmt::format("{}/heats/{:04}", request_.folder, number);
  std::vector<TrainingRequest> requests;
  std::string all = std::to_string(steps);
  for (size_t i = 0; i < points.size(); ++i) {
    TrainingRequest& run = requests.emplace_back();
    run.config = request_.config;
    run.settings = settings_of(request_, points[i]);
    all += fmt::format("\n{}", fmt::join(run.settings, "\n"));
    run.folder = fmt::format("{}/work/{}-{}", request_.folder, number, i);
    std::ranges::copy(measured_run_settings(), std::back_inserter(run.settings));
    // Another seed for every heat, the same for all in it. What the model is worth is the confirmation's to tell.
    run.settings.push_back(fmt::format("run.seed={}", request_.settings.run.seed + number));
    run.settings.push_back(fmt::format("train.steps={}", steps));
    run.settings.emplace_back("train.eval_interval=0");
    run.settings.emplace_back("train.eval_batches=1");
  }
  const std::string hash = hash_hex(hash_text(all));
  std::vector<MeasuredRun> measured = kept(path, hash, points.size());
  if (!measured.empty()) return measured;
  const std::vector<TurnRun> runs = run_in_turns(requests,
                                                 {.steps = steps,
                                                  .turn_seconds = request_.turn_seconds,
                                                  .seed = static_cast<uint64_t>(number),
                                                  .last_first = number % 2 == 1,
                                                  .turn_limit_seconds = limits.turn_seconds,
                                                  .seconds = limits.seconds},
                                                 stop_);
  if (stop_ && stop_()) return {};
  for (size_t i = 0; i < runs.size(); ++i) {
    measured.push_back(measured_run(runs[i]));
    refuse_full_disk(measured.back().reason);
    write_measured_run(fmt::format("{}-{}.json", path, i), measured.back()).take_or_throw();
    // What is left of a finished run is what was read of it; a failed one stays to be looked at.
    std::error_code error;
    for (const char* part : {"", ".out", ".err"})
      if (measured.back().ok()) fs::remove_all(requests[i].folder + part, error);
  }
  write_kept_json(path + ".json",
                  {{"points", hash},
                   {"runs", points.size()},
                   {"seconds", std::chrono::duration<double>(Clock::now() - begin).count()}})
      .take_or_throw();
  return measured;
}

}  // namespace fullbore
