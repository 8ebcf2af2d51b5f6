#include "fullbore/lab/quality/gate_training.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "fullbore/base/error.h"
#include "fullbore/base/files.h"
#include "fullbore/base/json.h"

namespace fullbore {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

/// All that decides what the runs and the test are.
Json plan_json(const GatePlan& plan) {
  Json metrics = Json::array();
  for (const QualityMetric& each : plan.metrics)
    metrics.push_back(fmt::format("{} {} {}", each.name, each.margin, each.is_relative));
  const auto arm = [](const GateArm& each) {
    Config config = each.settled;
    config.run = {};
    return parse_ordered_json(config_json(config)).take_or_throw();
  };
  return {{"a", arm(plan.a)},
          {"b", arm(plan.b)},
          {"first_seed", plan.first_seed},
          {"pilot", plan.pilot},
          {"alpha", plan.options.alpha},
          {"power", plan.options.power},
          {"metrics", std::move(metrics)}};
}

/// The first key whose value is another, with both.
std::string first_difference(const Json& found, const Json& wanted, const std::string& path) {
  if (!found.is_object() || !wanted.is_object())
    return fmt::format("{} is {}, not {}", path, found.dump(), wanted.dump());
  for (const auto& [key, value] : wanted.items()) {
    const auto there = found.find(key);
    const std::string own = path.empty() ? key : path + "." + key;
    if (there == found.end()) return own + " is missing";
    if (*there != value) return first_difference(*there, value, own);
  }
  return "it has more keys";
}

void open_folder(const GatePlan& plan) {
  const std::string path = plan.folder + "/plan.json";
  const Json wanted = plan_json(plan);
  std::error_code error;
  if (!fs::exists(path, error)) {
    if (fs::exists(plan.folder, error) && !fs::is_empty(plan.folder, error))
      throw UsageError(
          fmt::format("{} is no folder of a gate; name another by --out", plan.folder));
    make_folders(plan.folder).take_or_throw();
    write_file_atomically(path, wanted.dump(2) + "\n").take_or_throw();
    return;
  }
  if (!plan.resume)
    throw UsageError(fmt::format("{} is there: go on with it by --resume, or name another by --out",
                                 plan.folder));
  const Json found = parse_ordered_json(read_file(path).take_or_throw()).take_or_throw();
  if (found != wanted)
    throw UsageError(fmt::format("{} is of another plan: {}; name another folder by --out", path,
                                 first_difference(found, wanted, "")));
}

/// Makes the runs of one side.
class Side {
 public:
  Side(const GatePlan& plan, const GateArm& arm, const char* letter)
      : plan_(&plan), arm_(&arm), letter_(letter) {
    made_.name = arm.name;
  }

  const GateSide& made() const { return made_; }

  /// False if it was stopped.
  bool run(int64_t seed, const StopRequest& stop) {
    const std::string folder = fmt::format("{}/{}-{}", plan_->folder, letter_, seed);
    if (take(folder)) return true;
    TrainingRequest request{arm_->config, arm_->settings, folder};
    request.settings.push_back(fmt::format("run.seed={}", seed));
    const TrainingResult result = run_training(request, stop);
    if (result.end.stopped) return false;
    refuse_full_disk(result.reason);
    if (!result.ok())
      made_.failed.emplace_back(seed, result.reason);
    else
      made_.runs.push_back(read_completed_run(folder));
    return true;
  }

 private:
  /// A run of before.
  bool take(const std::string& folder) {
    std::error_code error;
    if (!fs::exists(folder, error)) return false;
    try {
      made_.runs.push_back(read_completed_run(folder));
      return true;
    } catch (const DataError&) {
      return false;  // it was cut short: it is made again
    }
  }

  const GatePlan* plan_;
  const GateArm* arm_;
  const char* letter_;
  GateSide made_;
};

/// Every look at what is worse costs its share of the alarms that there may be.
EquivalenceOptions options_of(const GatePlan& plan) {
  EquivalenceOptions options = plan.options;
  options.pilot = plan.pilot;
  options.alarm /= 2;
  return options;
}

int64_t seeds_needed(const EquivalenceReport& report) {
  int64_t most = 0;
  for (const EquivalenceResult& each : report.metrics) {
    if (each.seeds_needed == 0) return 0;
    most = std::max(most, each.seeds_needed);
  }
  return most;
}

class Training {
 public:
  Training(const GatePlan& plan, const StopRequest& stop,
           const std::function<void(const std::string&)>& tell)
      : plan_(plan), stop_(stop), tell_(tell), a_(plan, plan.a, "a"), b_(plan, plan.b, "b") {}

  GateTraining run() {
    open_folder(plan_);
    const int64_t pilot = std::min(plan_.pilot, plan_.most_seeds);
    if (!make_pairs(pilot)) return finish(true);
    const GateReport first = report();
    const int64_t needed = seeds_needed(first.test);
    if (first.test.verdict == Verdict::failed || made_ < pilot || needed <= made_)
      return finish(false);
    if (needed > plan_.most_seeds) {
      notes_.push_back(fmt::format("{} pairs are needed and --seeds allows {}: no more were made",
                                   needed, plan_.most_seeds));
      return finish(false);
    }
    if (!make_pairs(needed)) return finish(true);
    return finish(false);
  }

 private:
  /// Until there are so many, or time is out; false if it was stopped.
  bool make_pairs(int64_t pairs) {
    for (; made_ < pairs; ++made_) {
      if (!has_time()) {
        notes_.push_back(fmt::format("--minutes {:g} are over after {} of {} pairs", plan_.minutes,
                                     made_, pairs));
        return true;
      }
      const int64_t seed = plan_.first_seed + made_;
      const auto begin = Clock::now();
      // Neither of them is always the second.
      for (const bool is_first : {true, false}) {
        const bool is_a = is_first == (made_ % 2 == 0);
        tell_(fmt::format("pair {}/{}: {}, seed {}", made_ + 1, pairs, is_a ? "A" : "B", seed));
        if (!(is_a ? a_ : b_).run(seed, stop_)) return false;
      }
      slowest_ = std::max(slowest_, seconds_since(begin));
      refuse_baseline_that_fails();
    }
    return true;
  }

  /// Whatever becomes of B, more pairs would decide nothing.
  void refuse_baseline_that_fails() const {
    const GateSide& a = a_.made();
    if (a.runs.empty())
      throw DataError(fmt::format("lab gate: {} cannot be run: {}", a.name, a.failed[0].second));
  }

  static double seconds_since(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
  }
  bool has_time() const {
    return plan_.minutes <= 0 || seconds_since(begin_) + slowest_ <= 60 * plan_.minutes;
  }

  GateReport report() const { return gate(a_.made(), b_.made(), plan_.metrics, options_of(plan_)); }

  GateTraining finish(bool interrupted) {
    if (interrupted) return {{}, true};
    GateTraining done{report(), false};
    done.report.notes.insert(done.report.notes.end(), notes_.begin(), notes_.end());
    write_file_atomically(plan_.folder + "/gate.json", gate_json(done.report).dump(2) + "\n")
        .take_or_throw();
    return done;
  }

  const GatePlan& plan_;
  const StopRequest& stop_;
  const std::function<void(const std::string&)>& tell_;
  Side a_, b_;
  int64_t made_ = 0;
  double slowest_ = 0;
  std::vector<std::string> notes_;
  Clock::time_point begin_ = Clock::now();
};

}  // namespace

GateTraining train_gate(const GatePlan& plan, const StopRequest& stop,
                        const std::function<void(const std::string&)>& tell) {
  return Training(plan, stop, tell).run();
}

}  // namespace fullbore
