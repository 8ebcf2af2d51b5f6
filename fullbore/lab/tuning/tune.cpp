#include "fullbore/lab/tuning/tune.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "fullbore/base/error.h"
#include "fullbore/base/files.h"
#include "fullbore/lab/ablation/ablation_report.h"
#include "fullbore/lab/process/kept_json.h"
#include "fullbore/monitor/process.h"

namespace fullbore {
namespace {

/// Of the time, for the search; the rest is the confirmation's.
constexpr double kSearchShare = 0.7;
/// Where the search took longer, for plans are made and heats ended when its time is out.
constexpr double kLeastConfirmation = 0.2;
/// Of the machine's memory, for all runs that take turns.
constexpr double kMemoryShare = 0.9;

std::string identity_path(const std::string& folder) { return folder + "/tune.json"; }

void open_folder(const TuningRequest& request, const std::string& identity) {
  const std::string path = identity_path(request.folder);
  FileStatus status;
  const bool there = system_files().status(path, status) == 0;
  if (there && !request.resume)
    throw UsageError(
        fmt::format("lab: {} holds a tuning already; --resume goes on with it, --again begins "
                    "anew, --out names another folder",
                    request.folder));
  if (!there && request.resume)
    throw UsageError(fmt::format("lab: {} holds no tuning to go on with", request.folder));
  make_folders(request.folder).take_or_throw();
  if (!there) {
    write_kept_json(path, {{"identity", identity}}).take_or_throw();
    return;
  }
  const nlohmann::json kept =
      parse_kept_json(read_file(path).take_or_throw(), path).take_or_throw();
  if (kept.value("identity", "") != identity)
    throw UsageError(fmt::format(
        "lab: {} holds a tuning of another configuration, other choices or another machine, or by "
        "another build; what was measured there does not go with this",
        request.folder));
}

bool changes_batch(const TuningPoint& point) {
  return std::ranges::any_of(
      point, [](const Switch& each) { return numbers_of(each) == Numbers::another_batch; });
}

/// Arms of an ablation, by points: a pass that a point leaves out is a switch that is off.
struct ConfirmedArms {
  std::vector<Switch> switches;
  std::vector<Arm> arms;
};

ConfirmedArms arms_of(const std::vector<TuningPoint>& points) {
  ConfirmedArms result;
  for (const TuningPoint& point : points)
    for (const Switch& each : point)
      if (std::ranges::find(result.switches, each) == result.switches.end())
        result.switches.push_back(each);
  for (const TuningPoint& point : points) {
    Arm& arm = result.arms.emplace_back();
    arm.name = result.arms.size() == 1 ? "base" : fmt::format("tuned {}", result.arms.size() - 1);
    for (const Switch& each : result.switches) {
      const bool chosen = std::ranges::find(point, each) != point.end();
      arm.on.push_back(each.key.empty() != chosen);
    }
  }
  return result;
}

std::string quality_of(const ArmReport& arm, bool same_batch) {
  if (!same_batch) return "not judged: another batch size";
  if (arm.no_worse) return "no worse";
  for (const ArmMetric& metric : arm.metrics)
    if (metric.against_base.pairs > 0 && metric.against_base.verdict != Verdict::passed)
      return fmt::format("{} is {}: {}", metric.name, verdict_name(metric.against_base.verdict),
                         metric.against_base.reason);
  return "no metric is declared to judge it by";
}

bool is_shown_worse(const ArmReport& arm) {
  return std::ranges::any_of(arm.metrics, [](const ArmMetric& metric) {
    return metric.against_base.pairs > 0 && metric.against_base.verdict == Verdict::failed;
  });
}

/// Why the arm is not to be taken; empty: it is.
std::string declined(const ArmReport& arm, const TuningTrial& trial, TuningQuality quality) {
  if (!arm.reason.empty()) return arm.reason;
  if (!(arm.time.high < 0) || !arm.time.is_shown())
    return "not faster beyond its interval beside the defaults";
  if (quality == TuningQuality::any || changes_batch(trial.point)) return "";
  const bool changes = that_keep_numbers(trial.point) != trial.point;
  if (changes ? !arm.no_worse : is_shown_worse(arm)) return "quality: " + trial.quality;
  return "";
}

class Confirmer {
 public:
  Confirmer(const TuningRequest& request, const QualityMetrics& quality, const StopRequest& stop,
            const TellDoing& progress)
      : request_(request), quality_(quality), stop_(stop), progress_(progress) {}

  /// False: stopped.
  bool run(Tuning& tuning, double minutes) {
    std::vector<TuningPoint> points = {tuning.start, tuning.taken};
    const TuningPoint kept = that_keep_numbers(tuning.taken);
    if (kept != tuning.taken && kept != tuning.start) points.push_back(kept);
    std::vector<TuningTrial> trials;
    for (size_t i = 1; i < points.size(); ++i) trials.push_back({.point = points[i]});
    try {
      if (!measure(points, minutes, trials)) return false;
    } catch (const UsageError& error) {
      if (stop_ && stop_()) return false;
      for (TuningTrial& each : trials) each.reason = error.what();  // no time for two runs, say
    }
    conclude_tuning(tuning, std::move(trials));
    return true;
  }

 private:
  bool measure(const std::vector<TuningPoint>& points, double minutes,
               std::vector<TuningTrial>& trials) {
    const AblationRequest request = request_of(points, minutes);
    const Ablation ablation = ablate(request, stop_, [&](const std::string& doing) {
      if (progress_) progress_("confirming: " + doing);
    });
    if (ablation.interrupted) return false;
    const AblationReport report = report_ablation(ablation, request, quality_);
    for (size_t i = 0; i < trials.size(); ++i) {
      const ArmReport& arm = report.arms[i + 1];
      TuningTrial& trial = trials[i];
      trial.runs = arm.seeds;
      trial.steps = arm.steps;
      trial.difference = arm.time.difference;
      trial.low = arm.time.low;
      trial.high = arm.time.high;
      trial.quality = quality_of(arm, !changes_batch(trial.point));
      trial.reason = declined(arm, trial, request_.quality);
    }
    return true;
  }

  AblationRequest request_of(const std::vector<TuningPoint>& points, double minutes) const {
    AblationRequest request;
    request.config = request_.config;
    request.overrides = request_.overrides;
    request.settings = request_.settings;
    // The budget is each run's; what runs side by side has the machine's memory.
    request.settings.engine.memory_budget.clear();
    request.minutes = minutes;
    request.steps = request_.steps;
    constexpr int64_t kSeedsOfGivenSteps = 4;
    request.seeds = request_.steps > 0 ? kSeedsOfGivenSteps : 0;
    request.turn_seconds = request_.turn_seconds;
    request.folder = request_.folder + "/confirm";
    ConfirmedArms arms = arms_of(points);
    request.arms = std::move(arms.arms);
    request.given_switches = std::move(arms.switches);
    // Seeds that no heat had.
    constexpr int64_t kFirstSeed = 1'000'000;
    request.first_seed = kFirstSeed;
    FileStatus there;
    if (system_files().status(request.folder, there) != 0) return request;
    const Result<AblationPlan> plan = read_ablation_plan(request.folder + "/plan.json");
    request.resume = plan.ok() &&
                     std::ranges::equal(plan.value().arms, request.arms, {}, &PlannedArm::arm) &&
                     plan.value().switches == request.given_switches;
    if (!request.resume) remove_folder_with_contents(request.folder).take_or_throw();
    return request;
  }

  const TuningRequest& request_;
  const QualityMetrics& quality_;
  const StopRequest& stop_;
  const TellDoing& progress_;
};

}  // namespace

void conclude_tuning(Tuning& tuning, std::vector<TuningTrial> trials) {
  tuning.trials = std::move(trials);
  const TuningPoint found = std::exchange(tuning.taken, tuning.start);
  const TuningTrial* best = nullptr;
  for (const TuningTrial& each : tuning.trials)
    if (each.reason.empty() && (!best || each.difference < best->difference)) best = &each;
  if (best) tuning.taken = best->point;
  for (TuningRow& row : tuning.rows) {
    if (row.verdict != TuningVerdict::taken ||
        std::ranges::find(tuning.taken, row.choice) != tuning.taken.end())
      continue;
    const TuningTrial& whole = tuning.trials.front();
    const bool for_quality = whole.reason.starts_with("quality: ");
    row.verdict = for_quality ? TuningVerdict::worse : TuningVerdict::not_confirmed;
    row.reason = whole.reason;
  }
}

Tuning tune(const TuningRequest& request, const std::string& identity,
            const QualityMetrics& quality, const StopRequest& stop, const TellDoing& progress) {
  const std::vector<Coordinate> space = tuning_space(request.settings, request.scope);
  open_folder(request, identity);
  ProcessBench bench(request, stop);
  const double seconds = request.minutes * 60;
  Tuning tuning = search_tuning(request.settings, space,
                                {.seconds = kSearchShare * seconds,
                                 .steps = request.steps,
                                 .most_steps = request.settings.train.steps,
                                 .memory_bytes = static_cast<int64_t>(
                                     kMemoryShare * static_cast<double>(memory_limit_bytes())),
                                 .quality = request.quality},
                                bench, stop, progress);
  tuning.identity = identity;
  tuning.config = request.config;
  if (!tuning.interrupted && tuning.taken != tuning.start) {
    const double left = std::max(seconds - bench.seconds(), kLeastConfirmation * seconds);
    tuning.interrupted = !Confirmer(request, quality, stop, progress).run(tuning, left / 60);
  }
  tuning.seconds = bench.seconds();
  if (tuning.interrupted) return tuning;
  std::error_code error;
  for (const char* name : {"/work", "/confirm/caches"})
    std::filesystem::remove_all(request.folder + name, error);
  return tuning;
}

}  // namespace fullbore
