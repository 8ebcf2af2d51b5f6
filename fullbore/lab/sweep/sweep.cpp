#include "fullbore/lab/sweep/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>

#include "fullbore/base/error.h"
#include "fullbore/base/files.h"
#include "fullbore/base/hash.h"
#include "fullbore/base/seal.h"
#include "fullbore/base/start_thread.h"
#include "fullbore/base/text.h"
#include "fullbore/base/threads.h"
#include "fullbore/lab/ablation/arm_plan.h"
#include "fullbore/lab/process/kept_json.h"

namespace fullbore {
namespace {

using Clock = std::chrono::steady_clock;

nlohmann::ordered_json number(double value) {
  return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json();
}
double number_of(const nlohmann::json& json, const char* key) {
  const nlohmann::json& value = json.at(key);
  return value.is_null() ? SweepRun::kUnknown : value.get<double>();
}

std::string run_path(const std::string& folder, int64_t round, int64_t trial) {
  return fmt::format("{}/trials/{}-{}.json", folder, round, trial);
}

/// Runs trials of one round side by side.
class Round {
 public:
  Round(const SweepRequest& request, const SweepTrials& trials, int64_t number, int64_t steps,
        const StopRequest& stop, const std::function<void(const std::string&)>& tell,
        Clock::time_point deadline)
      : request_(request),
        trials_(trials),
        number_(number),
        steps_(steps),
        stop_(stop),
        tell_(tell),
        deadline_(deadline) {}

  /// All of `wanted` that there was time for.
  std::vector<SweepRun> run(std::vector<int64_t> wanted) {
    wanted_ = std::move(wanted);
    const auto workers = static_cast<size_t>(std::min<int64_t>(at_once(), std::ssize(wanted_)));
    {
      std::vector<std::jthread> helpers;
      if (workers > 1) helpers = start_helpers(workers - 1, [this] { work(); });
      work();
    }
    if (failure_) std::rethrow_exception(failure_);
    std::vector<SweepRun> runs;
    for (auto& [trial, run] : done_) runs.push_back(std::move(run));
    return runs;
  }
  bool stopped() const { return stopped_; }
  bool out_of_time() const { return out_of_time_; }

 private:
  int64_t at_once() const {
    return request_.at_once > 0 ? request_.at_once : available_processors();
  }

  void work() {
    try {
      while (const std::optional<int64_t> trial = next()) finish(*trial, one(*trial));
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!failure_) failure_ = std::current_exception();
    }
  }

  std::optional<int64_t> next() {
    const std::lock_guard lock(mutex_);
    if (failure_ || stopped_) return std::nullopt;
    if (next_ == wanted_.size()) return std::nullopt;
    if (stop_ && stop_()) {
      stopped_ = true;
      return std::nullopt;
    }
    if (Clock::now() >= deadline_) {
      out_of_time_ = true;
      return std::nullopt;
    }
    const int64_t trial = wanted_[next_++];
    tell_(
        fmt::format("round {}, {} steps: trial {}/{}", number_ + 1, steps_, next_, wanted_.size()));
    return trial;
  }

  std::optional<SweepRun> one(int64_t trial) {
    const std::string path = run_path(request_.folder, number_, trial);
    if (Result<SweepRun> kept = read_sweep_run(path);
        kept.ok() && kept.value().trial == trial && kept.value().round == number_)
      return std::move(kept).value();
    const std::string folder = fmt::format("{}/runs/{}-{}", request_.folder, number_, trial);
    std::vector<std::string> settings =
        trial_settings(request_.space, trials_[static_cast<size_t>(trial)]);
    settings.push_back(fmt::format("train.steps={}", steps_));
    const int64_t threads = request_.threads > 0
                                ? request_.threads
                                : std::max<int64_t>(1, available_processors() / at_once());
    settings.push_back(fmt::format("engine.threads={}", threads));
    SweepRun run;
    run.trial = trial;
    run.round = number_;
    const ArmPlan plan = plan_arm(request_.space.config, settings, folder + ".plan", stop_);
    if (stop_ && stop_()) return std::nullopt;
    refuse_full_disk(plan.refused);
    if (!plan.refused.empty()) {
      run.reason = plan.refused;
    } else {
      const int64_t bytes = plan.planned_bytes + plan.process_bytes;
      take_memory(bytes);
      const TrainingResult result = run_training(
          {.config = request_.space.config, .settings = settings, .folder = folder}, stop_);
      give_memory(bytes);
      if (result.end.stopped) return std::nullopt;
      refuse_full_disk(result.reason);
      judge(result, run);
    }
    write_sweep_run(path, run).take_or_throw();
    return run;
  }

  void judge(const TrainingResult& result, SweepRun& run) const {
    run.reason = result.reason;
    run.seconds = result.end.seconds;
    run.resident_peak_bytes = result.outcome.resident_peak_bytes;
    for (const RunEvaluation& each : result.outcome.evaluations)
      if (const double value = each.metric(request_.space.metric); std::isfinite(value))
        run.curve.push_back({each.step, value});
    if (!run.ok()) return;
    if (run.curve.empty())
      run.reason = fmt::format("its evaluations have no metric '{}'", request_.space.metric);
    else
      run.value = run.curve.back().value;
  }

  /// Waits until the others leave so much; whoever is alone goes on whatever it takes: its own budget is for it to judge.
  void take_memory(int64_t bytes) {
    std::unique_lock lock(mutex_);
    freed_.wait(lock, [&] {
      return request_.memory_bytes == 0 || taken_ == 0 || taken_ + bytes <= request_.memory_bytes;
    });
    taken_ += bytes;
  }
  void give_memory(int64_t bytes) {
    {
      const std::lock_guard lock(mutex_);
      taken_ -= bytes;
    }
    freed_.notify_all();
  }

  void finish(int64_t trial, std::optional<SweepRun> run) {
    const std::lock_guard lock(mutex_);
    if (run)
      done_[trial] = std::move(*run);
    else
      stopped_ = true;
  }

  const SweepRequest& request_;
  const SweepTrials& trials_;
  const int64_t number_, steps_;
  const StopRequest& stop_;
  const std::function<void(const std::string&)>& tell_;
  const Clock::time_point deadline_;
  std::mutex mutex_;
  std::condition_variable freed_;
  std::vector<int64_t> wanted_;
  size_t next_ = 0;
  int64_t taken_ = 0;  ///< bytes of memory that running trials ask for
  std::map<int64_t, SweepRun> done_;
  std::exception_ptr failure_;
  bool stopped_ = false, out_of_time_ = false;
};

void open_folder(const SweepRequest& request) {
  const std::string path = request.folder + "/space.json";
  const std::string wanted =
      seal_json(nlohmann::ordered_json{{"space", hash_hex(hash_text(request.source))},
                                       {"steps", request.most_steps}}
                    .dump(2) +
                '\n');
  FileStatus status;
  if (system_files().status(path, status) == 0) {
    if (!request.resume)
      throw UsageError(fmt::format(
          "lab: {} holds a sweep already; --resume goes on with it, --out names another folder",
          request.folder));
    if (read_file(path).take_or_throw() != wanted)
      throw UsageError(fmt::format(
          "lab: {} holds the sweep of another file or of other steps; --out names another folder",
          request.folder));
  } else if (request.resume) {
    throw UsageError(fmt::format("lab: {} holds no sweep to go on with", request.folder));
  }
  make_folders(request.folder).take_or_throw();
  // What is made and removed in them stays in this folder, whoever made it.
  for (const char* name : {"/trials", "/runs"})
    make_own_folder(request.folder + name).take_or_throw();
  if (!request.resume) write_file_atomically(path, wanted).take_or_throw();
}

}  // namespace

Status write_sweep_run(const std::string& path, const SweepRun& run) {
  nlohmann::ordered_json curve = nlohmann::ordered_json::array();
  for (const SweepRun::Point& point : run.curve) curve.push_back({point.step, point.value});
  const nlohmann::ordered_json json = {{"trial", run.trial},
                                       {"round", run.round},
                                       {"reason", run.reason},
                                       {"value", number(run.value)},
                                       {"curve", std::move(curve)},
                                       {"seconds", number(run.seconds)},
                                       {"resident_peak_bytes", run.resident_peak_bytes}};
  return write_kept_json(path, json);
}

Result<SweepRun> parse_sweep_run(const std::string& text, const std::string& path) {
  const Result<nlohmann::json> parsed = parse_kept_json(text, path);
  if (!parsed.ok()) return Failure{parsed.error()};
  try {
    const nlohmann::json& json = parsed.value();
    SweepRun run;
    run.trial = json.at("trial").get<int64_t>();
    run.round = json.at("round").get<int64_t>();
    run.reason = json.at("reason").get<std::string>();
    run.value = number_of(json, "value");
    for (const nlohmann::json& point : json.at("curve"))
      run.curve.push_back({point.at(0).get<int64_t>(), point.at(1).get<double>()});
    run.seconds = number_of(json, "seconds");
    run.resident_peak_bytes = json.at("resident_peak_bytes").get<int64_t>();
    if (run.ok() != std::isfinite(run.value))
      return Failure{fmt::format("{}: a value without a reason, or a reason without one", path)};
    return run;
  } catch (const nlohmann::json::exception& error) {
    return Failure{fmt::format("{}: {}", path, error.what())};
  }
}

Result<SweepRun> read_sweep_run(const std::string& path) {
  const Result<std::string> text = read_file(path);
  if (!text.ok()) return Failure{text.error()};
  return parse_sweep_run(text.value(), path);
}

std::vector<int64_t> survivors(const std::vector<SweepRun>& runs, const SweepSpace& space) {
  std::vector<SweepRun> sound;
  std::ranges::copy_if(runs, std::back_inserter(sound), &SweepRun::ok);
  std::ranges::stable_sort(sound, [&](const SweepRun& a, const SweepRun& b) {
    return space.higher_is_better ? a.value > b.value : a.value < b.value;
  });
  const int64_t many = (std::ssize(sound) + space.reduction - 1) / space.reduction;
  std::vector<int64_t> trials;
  for (int64_t i = 0; i < many; ++i) trials.push_back(sound[static_cast<size_t>(i)].trial);
  return trials;
}

Sweep run_sweep(const SweepRequest& request, const StopRequest& stop,
                const std::function<void(const std::string&)>& tell) {
  Sweep sweep;
  sweep.trials = sweep_trials(request.space);
  sweep.rounds = sweep_rounds(request.space, request.most_steps);
  open_folder(request);
  const Clock::time_point deadline =
      request.minutes > 0
          ? Clock::now() + std::chrono::milliseconds(static_cast<int64_t>(60'000 * request.minutes))
          : Clock::time_point::max();
  std::vector<int64_t> wanted;
  for (int64_t trial = 0; trial < std::ssize(sweep.trials); ++trial) wanted.push_back(trial);
  for (size_t number = 0; number < sweep.rounds.size() && !wanted.empty(); ++number) {
    Round round(request, sweep.trials, static_cast<int64_t>(number), sweep.rounds[number], stop,
                tell, deadline);
    sweep.runs.push_back(round.run(wanted));
    sweep.interrupted = round.stopped();
    sweep.out_of_time = round.out_of_time();
    if (sweep.interrupted || sweep.out_of_time) break;
    wanted = survivors(sweep.runs.back(), request.space);
  }
  return sweep;
}

}  // namespace fullbore
