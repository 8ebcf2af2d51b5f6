#include "fullbore/lab/ablation/ablation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>

#include "fullbore/base/build_id.h"
#include "fullbore/base/error.h"
#include "fullbore/base/files.h"
#include "fullbore/base/hash.h"
#include "fullbore/base/text.h"
#include "fullbore/lab/ablation/arm_search.h"
#include "fullbore/lab/ablation/energy_meter.h"
#include "fullbore/monitor/sample_statistics.h"
#include "fullbore/train/memory_fit.h"

namespace fullbore {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr int64_t kTrialSteps = 8;
/// The trial of all arms takes this share of the time at most; what has not been tried then is dropped.
constexpr double kMostTrialShare = 0.4;

std::string plan_path(const std::string& folder) { return folder + "/plan.json"; }
std::string trial_path(const std::string& folder, size_t arm) {
  return fmt::format("{}/trials/{}.json", folder, arm);
}
std::string run_path(const std::string& folder, int64_t seed, size_t group, size_t place) {
  return fmt::format("{}/runs/seed-{}/group-{}-{}.json", folder, seed, group, place);
}

class Ablater {
 public:
  Ablater(const AblationRequest& request, const StopRequest& stop, const TellDoing& progress)
      : request_(request), stop_(stop), progress_(progress) {}

  Ablation run(const std::function<void(const AblationPlan&)>& told) {
    if (request_.arms.empty()) read_switches();  // refused before a folder is made
    open_folder();
    if (result_.plan.arms.empty()) find();
    if (stopped()) return interrupted();
    if (result_.plan.steps == 0 && !try_arms()) return interrupted();
    measure(told);
    std::error_code error;
    fs::remove_all(request_.folder + "/work", error);
    return std::move(result_);
  }

 private:
  bool stopped() const { return stop_ && stop_(); }
  double elapsed() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }
  Ablation interrupted() {
    result_.interrupted = true;
    return std::move(result_);
  }
  void say(const std::string& doing) const {
    if (progress_) progress_(doing);
  }
  void save_plan() const {
    write_ablation_plan(plan_path(request_.folder), result_.plan).take_or_throw();
  }

  std::string identity() const {
    return hash_hex(hash_text(fmt::format("{}\n{}\n{} {} {}\n{}", config_yaml(request_.settings),
                                          fmt::join(request_.switches, "\n"), request_.seeds,
                                          request_.steps, request_.eval_batches, build_id())));
  }

  /// What --switch names, or all that there are.
  void read_switches() {
    for (const std::string& text : request_.switches)
      for (Switch& each : parse_switch(text, request_.settings))
        if (std::ranges::find(candidates_, each) == candidates_.end())
          candidates_.push_back(std::move(each));
    if (request_.switches.empty()) candidates_ = known_switches(request_.settings);
  }

  void open_folder() {
    if (request_.seeds == 1)
      throw UsageError(
          fmt::format("lab: --seeds {}: one run tells nothing of how runs differ; 2 at least, or 0",
                      request_.seeds));
    if (FileStatus status; system_files().status(plan_path(request_.folder), status) == 0) {
      if (!request_.resume)
        throw UsageError(
            fmt::format("lab: {} holds an ablation already; --resume goes on with it, "
                        "--out names another folder",
                        request_.folder));
      result_.plan = read_ablation_plan(plan_path(request_.folder)).take_or_throw();
      if (result_.plan.identity != identity())
        throw UsageError(fmt::format(
            "lab: {} holds an ablation of another configuration, other switches, seeds or "
            "steps, or by another build; what was measured there does not go with this",
            request_.folder));
    } else if (request_.resume) {
      throw UsageError(fmt::format("lab: {} holds no ablation to go on with", request_.folder));
    }
    make_folders(request_.folder).take_or_throw();
    // What is made and removed in them stays in this folder, whoever made it.
    for (const char* name : {"/trials", "/runs", "/work", "/caches"})
      make_own_folder(request_.folder + name).take_or_throw();
  }

  void find() {
    AblationPlan& plan = result_.plan;
    plan.identity = identity();
    plan.seeds = request_.seeds;
    int64_t planned = 0;
    const ArmPlanner planner = [&](const Arm& arm, const std::vector<Switch>& switches) {
      if (stopped()) return ArmPlan{.refused = "stopped"};
      say(fmt::format("planning arms: {}", ++planned));
      std::vector<std::string> settings = request_.overrides;
      std::ranges::copy(arm_settings(arm, switches, request_.settings),
                        std::back_inserter(settings));
      ArmPlan found =
          plan_arm(request_.config, settings, request_.folder + "/work/plan.json", stop_);
      refuse_full_disk(found.refused);
      return found;
    };
    try {
      if (request_.arms.empty())
        find_arms(plan, candidates_, planner);
      else
        take_arms(plan, request_.given_switches, request_.arms, planner);
    } catch (const UsageError&) {
      if (!stopped()) throw;  // refused as whoever plans was stopped
    }
    if (!stopped()) save_plan();
  }

  /// `work`: name of its folder.
  TrainingRequest request_of(size_t arm, int64_t seed, int64_t steps, int64_t interval,
                             const std::string& work) const {
    TrainingRequest request{.config = request_.config,
                            .settings = request_.overrides,
                            .folder = fmt::format("{}/work/{}", request_.folder, work)};
    const Arm& of = result_.plan.arms[arm].arm;
    std::ranges::copy(measured_run_settings(), std::back_inserter(request.settings));
    request.settings.push_back(
        fmt::format("train.eval_batches={}", evaluation_batches(request_, result_.plan)));
    std::ranges::copy(arm_settings(of, result_.plan.switches, request_.settings),
                      std::back_inserter(request.settings));
    request.settings.push_back(
        fmt::format("run.seed={}", request_.settings.run.seed + request_.first_seed + seed));
    request.settings.push_back(fmt::format("train.steps={}", steps));
    request.settings.push_back(fmt::format("train.eval_interval={}", interval));
    request.settings.push_back(
        fmt::format("engine.cache_dir={}/caches/{}", fs::absolute(request_.folder).string(), arm));
    return request;
  }

  /// What is left of a finished run is what was read of it; a failed one stays to be looked at.
  void clear(const TrainingRequest& request, bool ok) const {
    std::error_code error;
    for (const char* part : {"", ".out", ".err"})
      if (ok) fs::remove_all(request.folder + part, error);
  }

  /// False where stopped: then it is not kept.
  bool try_arm(size_t arm, bool cold, MeasuredRun& measured) const {
    std::error_code error;
    const std::string caches = fmt::format("{}/caches/{}", request_.folder, arm);
    if (cold) fs::remove_all(caches, error);
    const int64_t steps = std::min(kTrialSteps, request_.settings.train.steps);
    const TrainingRequest request = request_of(arm, 0, steps, 0, fmt::format("trial-{}", arm));
    const std::vector<TurnRun> runs =
        run_in_turns({&request, 1}, {.steps = steps, .turn_seconds = request_.turn_seconds}, stop_);
    if (stopped()) return false;
    measured = measured_run(runs[0]);
    refuse_full_disk(measured.reason);
    clear(request, measured.ok());
    return true;
  }

  bool try_arms() {
    AblationPlan& plan = result_.plan;
    result_.trials.resize(plan.arms.size());
    const double seconds = request_.minutes * 60;
    double warm_share = 1;
    for (size_t i = 0; i < plan.arms.size(); ++i) {
      PlannedArm& arm = plan.arms[i];
      if (!arm.is_measured()) continue;
      if (i > 1 && seconds > 0 && elapsed() > kMostTrialShare * seconds) {
        arm.dropped = "no time to try it: raise --minutes";
        continue;
      }
      MeasuredRun& trial = result_.trials[i];
      Result<MeasuredRun> kept = read_measured_run(trial_path(request_.folder, i));
      if (kept.ok()) {
        trial = std::move(kept).value();
      } else {
        say(fmt::format("trying arm {}/{}: {}", i + 1, plan.arms.size(), arm.arm.name));
        if (!try_arm(i, true, trial)) return false;
        write_measured_run(trial_path(request_.folder, i), trial).take_or_throw();
      }
      if (!trial.ok()) arm.dropped = trial.reason;
      if (i > 0) continue;
      if (!trial.ok())
        throw DataError(fmt::format("lab: the base cannot be run: {}", trial.reason));
      MeasuredRun warm;
      if (!try_arm(i, false, warm)) return false;
      if (warm.ok()) warm_share = std::min(1.0, warm.ready_seconds / trial.ready_seconds);
    }
    std::vector<ArmCost> costs;
    for (const MeasuredRun& trial : result_.trials)
      costs.push_back(
          {trial.ready_seconds * warm_share, trial.median_step_seconds(), trial.finish_seconds});
    spend(plan, costs,
          {.seconds = request_.minutes * 60 - elapsed(),
           .steps = request_.steps,
           .most_steps = request_.settings.train.steps,
           .turn_seconds = request_.turn_seconds,
           .memory_bytes = memory_budget_bytes(request_.settings)});
    save_plan();
    return true;
  }

  /// What takes longer than the trials told, as evaluations without kernels do, ends with fewer seeds, of which two are needed.
  bool is_out_of_time(int64_t seeds_done) const {
    constexpr int64_t kLeastSeeds = 2;
    return request_.minutes > 0 && seeds_done >= kLeastSeeds && elapsed() > request_.minutes * 60;
  }

  void cut_seeds(int64_t seeds_done) {
    AblationPlan& plan = result_.plan;
    plan.cut_seeds += plan.seeds - seeds_done;
    plan.seeds = seeds_done;
    result_.runs.resize(static_cast<size_t>(seeds_done));
    save_plan();
  }

  void measure(const std::function<void(const AblationPlan&)>& told) {
    const AblationPlan& plan = result_.plan;
    if (result_.trials.empty()) read_trials();
    const Clock::time_point start = Clock::now();
    int64_t done = 0;
    int64_t made = 0;  ///< of this process
    int64_t all = 0;
    for (const std::vector<size_t>& group : plan.groups)
      all += plan.seeds * plan.steps * std::ssize(group);
    result_.runs.assign(static_cast<size_t>(plan.seeds), {});
    for (int64_t seed = 0; seed < plan.seeds; ++seed) {
      if (!result_.interrupted && is_out_of_time(seed)) return cut_seeds(seed);
      make_own_folder(fmt::format("{}/runs/seed-{}", request_.folder, seed)).take_or_throw();
      for (size_t group = 0; group < plan.groups.size(); ++group) {
        std::vector<MeasuredRun>& runs = result_.runs[static_cast<size_t>(seed)].emplace_back();
        const int64_t steps = plan.steps * std::ssize(plan.groups[group]);
        if (!result_.interrupted && !read_runs(seed, group, runs)) {
          if (made == 0 && told) told(plan);
          runs = run_group(seed, group, [&](int64_t now) {
            const double spent = std::chrono::duration<double>(Clock::now() - start).count();
            const double rate = static_cast<double>(made + now) / spent;
            say(fmt::format("seed {}/{}, group {}/{}: {:.0f}%, {} left", seed + 1, plan.seeds,
                            group + 1, plan.groups.size(),
                            100 * static_cast<double>(done + now) / static_cast<double>(all),
                            duration_text(static_cast<double>(all - done - now) / rate)));
          });
          made += steps;
        }
        done += steps;
      }
    }
  }

  void read_trials() {
    result_.trials.resize(result_.plan.arms.size());
    for (size_t i = 0; i < result_.trials.size(); ++i)
      if (Result<MeasuredRun> kept = read_measured_run(trial_path(request_.folder, i)); kept.ok())
        result_.trials[i] = std::move(kept).value();
  }

  bool read_runs(int64_t seed, size_t group, std::vector<MeasuredRun>& runs) const {
    for (size_t place = 0; place < result_.plan.groups[group].size(); ++place) {
      Result<MeasuredRun> kept = read_measured_run(run_path(request_.folder, seed, group, place));
      if (!kept.ok()) {
        runs.clear();
        return false;
      }
      runs.push_back(std::move(kept).value());
    }
    return true;
  }

  std::vector<MeasuredRun> run_group(int64_t seed, size_t group,
                                     const std::function<void(int64_t)>& progress) {
    const AblationPlan& plan = result_.plan;
    std::vector<TrainingRequest> requests;
    for (size_t place = 0; place < plan.groups[group].size(); ++place)
      requests.push_back(request_of(plan.groups[group][place], seed, plan.steps,
                                    plan.evaluation_interval,
                                    fmt::format("seed-{}-group-{}-{}", seed, group, place)));
    std::function<double()> joules;
    if (meter_.missing().empty()) joules = [this] { return meter_.joules(); };
    const std::vector<TurnRun> runs =
        run_in_turns(requests,
                     {.steps = plan.steps,
                      .turn_seconds = request_.turn_seconds,
                      .seed = static_cast<uint64_t>(seed) * 1000 + group,
                      .last_first = seed % 2 == 1,
                      .joules = joules},
                     stop_, progress);
    if (stopped()) {
      result_.interrupted = true;
      return {};
    }
    std::vector<MeasuredRun> measured;
    for (const TurnRun& run : runs) {
      measured.push_back(measured_run(run));
      refuse_full_disk(measured.back().reason);
    }
    for (size_t place = 0; place < measured.size(); ++place) {
      write_measured_run(run_path(request_.folder, seed, group, place), measured[place])
          .take_or_throw();
      clear(requests[place], measured[place].ok());
    }
    return measured;
  }

  const AblationRequest& request_;
  const StopRequest& stop_;
  const TellDoing& progress_;
  Clock::time_point begin_ = Clock::now();
  EnergyMeter meter_{is_on_card(request_.settings.engine.device)};
  std::vector<Switch> candidates_;
  Ablation result_;
};

}  // namespace

Ablation ablate(const AblationRequest& request, const StopRequest& stop, const TellDoing& progress,
                const std::function<void(const AblationPlan&)>& told) {
  return Ablater(request, stop, progress).run(told);
}

Ablation read_ablation(const std::string& folder) {
  Ablation ablation;
  ablation.plan = read_ablation_plan(plan_path(folder)).take_or_throw();
  for (size_t i = 0; i < ablation.plan.arms.size(); ++i) {
    Result<MeasuredRun> trial = read_measured_run(trial_path(folder, i));
    ablation.trials.push_back(trial.ok() ? std::move(trial).value() : MeasuredRun{});
  }
  for (int64_t seed = 0; seed < ablation.plan.seeds; ++seed) {
    auto& groups = ablation.runs.emplace_back();
    for (size_t group = 0; group < ablation.plan.groups.size(); ++group) {
      std::vector<MeasuredRun>& runs = groups.emplace_back();
      for (size_t place = 0; place < ablation.plan.groups[group].size(); ++place) {
        Result<MeasuredRun> run = read_measured_run(run_path(folder, seed, group, place));
        if (!run.ok()) throw DataError(run.error());
        runs.push_back(std::move(run).value());
      }
    }
  }
  return ablation;
}

int64_t evaluation_batches(const AblationRequest& request, const AblationPlan& plan) {
  const int64_t configured = request.settings.train.eval_batches;
  const bool same_rows = std::ranges::all_of(plan.switches, [](const Switch& each) {
    return each.key.empty() || each.key.starts_with("engine.") || each.key.starts_with("optim.");
  });
  if (request.eval_batches == 0 || !same_rows) return configured;
  return configured == 0 ? request.eval_batches : std::min(configured, request.eval_batches);
}

size_t measured_arm(const AblationPlan& plan, size_t arm) {
  const int same = plan.arms[arm].same_as;
  return same < 0 ? arm : static_cast<size_t>(same);
}

}  // namespace fullbore
