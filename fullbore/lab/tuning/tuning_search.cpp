#include "fullbore/lab/tuning/tuning_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "fullbore/base/error.h"
#include "fullbore/base/text.h"
#include "fullbore/device/automatic_device.h"
#include "fullbore/lab/tuning/race.h"
#include "fullbore/train/config_schema.h"
#include "fullbore/train/storage_keys.h"

namespace fullbore {
namespace {

constexpr int64_t kFewestSteps = 10;
constexpr size_t kMostOfAHeat = 8;
/// Seconds for a turn of candidates, at least.
constexpr double kLeastLimit = 20;
constexpr double kMostRunsOfATurn = 4;

Switch setting(const char* key, const char* value, const Config& config) {
  return {fmt::format("{}={}", key, value), key, value,
          value_yaml(*find_config_field(key), config)};
}

bool is_about_memory(const ArmPlan& plan) {
  return plan.refused.starts_with(fmt::format("exit code {}", static_cast<int>(ExitCode::kMemory)));
}

void fill(TuningRow& row, const ArmPlan& plan) {
  row.predicted_seconds = plan.roofline_seconds;
  row.predicted_bytes = plan.planned_bytes + plan.process_bytes;
}

void fill_memory(TuningRow& row, const MeasuredRun& run) {
  row.resident_bytes = std::max(row.resident_bytes, run.resident_peak_bytes);
}

/// A candidate of the race that is on.
struct Runner {
  size_t row;
  TuningPoint point;
  std::string fingerprint;
  int64_t bytes;
  std::vector<HeatFigure> heats;
};

class Search {
 public:
  Search(const Config& config, const SearchOptions& options, TuningBench& bench,
         const StopRequest& stop, const std::function<void(const std::string&)>& progress)
      : config_(config), options_(options), bench_(bench), stop_(stop), progress_(progress) {}

  Tuning run(const std::vector<Coordinate>& space) {
    for (const Coordinate& each : space)
      for (const Switch& choice : each.choices) {
        TuningRow& row = result_.rows.emplace_back();
        row.choice = choice;
      }
    from_base_.resize(result_.rows.size());
    find_start();
    if (!stopped()) try_base();
    size_t first = 0;
    for (const Coordinate& each : space) {
      if (stopped()) break;
      ++at_;
      doing_ = fmt::format("{} ({}/{})", each.name, at_, space.size());
      tune(first, each.choices.size(), each.name != "passes");
      first += each.choices.size();
    }
    for (TuningRow& row : result_.rows) {
      if (row.verdict != TuningVerdict::open) continue;
      row.verdict = TuningVerdict::no_time;
      result_.out_of_time = true;
    }
    tell_step_seconds();
    result_.interrupted = stopped();
    result_.taken = incumbent_;
    return std::move(result_);
  }

 private:
  bool stopped() const { return stopped_ || (stop_ && stop_()); }
  double seconds_left() const { return options_.seconds - bench_.seconds(); }

  void say(const std::string& what) const {
    if (progress_)
      progress_(fmt::format("{}{}{}; at most {} left", doing_, doing_.empty() ? "" : ": ", what,
                            duration_text(std::max(0.0, seconds_left()))));
  }

  void find_start() {
    say("planning");
    incumbent_plan_ = bench_.plan({});
    if (is_about_memory(incumbent_plan_)) {
      result_.start_reason = incumbent_plan_.refused;
      for (const TuningPoint& rung : memory_ladder(config_)) {
        if (stopped()) return;
        ArmPlan plan = bench_.plan(rung);
        if (!plan.refused.empty()) continue;
        incumbent_ = result_.start = rung;
        incumbent_plan_ = std::move(plan);
        break;
      }
      if (result_.start.empty())
        throw MemoryError(
            fmt::format("lab: the job does not fit, however it is recomputed and cut "
                        "into parts: {}",
                        result_.start_reason));
    }
    if (stopped()) return;
    if (!incumbent_plan_.refused.empty())
      throw UsageError(fmt::format("lab: the job cannot be planned: {}", incumbent_plan_.refused));
    fill(result_.base, incumbent_plan_);
  }

  /// How long steps and starts take.
  void try_base() {
    constexpr int64_t kTrialSteps = 10;
    doing_ = "as configured";
    say("trying");
    const double begin = bench_.seconds();
    const std::vector<MeasuredRun> runs =
        bench_.heat({incumbent_}, std::min(kTrialSteps, options_.most_steps), {});
    if (runs.empty()) {
      stopped_ = true;
      return;
    }
    if (!runs[0].ok())
      throw DataError(fmt::format("lab: the job cannot be run: {}", runs[0].reason));
    note_base(runs[0]);
    run_seconds_ = bench_.seconds() - begin;
    const double step = std::max(runs[0].median_step_seconds(), 1e-6);
    const double start =
        std::max(0.0, run_seconds_ - step * static_cast<double>(std::ssize(runs[0].step_seconds)));
    // Half of the candidates are told from the incumbent by one heat, the others by all.
    const double runs_in_all =
        static_cast<double>(result_.rows.size()) * static_cast<double>(1 + kMostHeats) / 2 + 1;
    const double wanted = std::clamp(seconds_left() / runs_in_all - start, 0.3, 4.0);
    steps_ = options_.steps > 0
                 ? options_.steps
                 : std::max(kFewestSteps, static_cast<int64_t>(std::llround(wanted / step)));
    steps_ = std::min(steps_, options_.most_steps);
    run_seconds_ = start + step * static_cast<double>(steps_);
  }

  /// Plans what is open of the rows; what is another program than the incumbent's races.
  std::vector<Runner> plan(size_t first, size_t count) {
    std::vector<Runner> runners;
    for (size_t i = first; i < first + count && !stopped() && seconds_left() > 0; ++i) {
      TuningRow& row = result_.rows[i];
      if (row.verdict != TuningVerdict::open) continue;
      say(fmt::format("planning {}", choice_name(row.choice)));
      Runner runner{i, with(incumbent_, row.choice), "", 0, {}};
      const ArmPlan plan = bench_.plan(runner.point);
      if (stopped()) break;
      if (!plan.refused.empty()) {
        row.verdict = is_about_memory(plan) ? TuningVerdict::does_not_fit : TuningVerdict::refused;
        row.reason = plan.refused;
        continue;
      }
      fill(row, plan);
      runner.fingerprint = plan.fingerprint;
      runner.bytes = row.predicted_bytes;
      // What loads data changes no program.
      const bool is_of_engine = row.choice.key.empty() || row.choice.key.starts_with("engine.");
      const auto equal = std::ranges::find(runners, plan.fingerprint, &Runner::fingerprint);
      if (is_of_engine && plan.fingerprint == incumbent_plan_.fingerprint) {
        row.verdict = TuningVerdict::same_program;
      } else if (is_of_engine && equal != runners.end()) {
        row.verdict = TuningVerdict::same_program;
        row.reason = fmt::format("the program of {}", choice_name(result_.rows[equal->row].choice));
      } else {
        runners.push_back(std::move(runner));
      }
    }
    return runners;
  }

  void tune(size_t first, size_t count, bool exclusive) {
    if (seconds_left() <= 0) return;
    for (;;) {
      std::vector<Runner> runners = plan(first, count);
      if (stopped() || runners.empty()) return;
      const std::vector<size_t> faster = race(std::move(runners), exclusive);
      const size_t none = result_.rows.size();
      size_t best = none;
      for (const size_t i : faster) {
        TuningRow& row = result_.rows[i];
        if (!may_take(row))
          row.verdict = TuningVerdict::not_allowed;
        else if (best == none || row.difference < result_.rows[best].difference)
          best = i;
      }
      if (best == none || stopped()) return;
      take(result_.rows[best]);
      // The others were faster than the incumbent that was; are they than the one that is?
      for (const size_t i : faster) {
        TuningRow& row = result_.rows[i];
        if (row.verdict != TuningVerdict::open || !exclusive) continue;
        row.verdict = TuningVerdict::slower;
        row.reason = "than " + choice_name(result_.rows[best].choice);
      }
      if (exclusive) return;
    }
  }

  bool may_take(TuningRow& row) const {
    if (numbers_of(row.choice) != Numbers::changed || options_.quality == TuningQuality::any)
      return true;
    if (options_.quality == TuningQuality::same) {
      row.reason = "--quality margin or any would allow it";
      return false;
    }
    const bool another_batch = std::ranges::any_of(
        incumbent_, [](const Switch& each) { return numbers_of(each) == Numbers::another_batch; });
    if (another_batch)
      row.reason =
          "with another batch size quality cannot be compared; --quality any would allow it";
    return !another_batch;
  }

  void take(TuningRow& row) {
    row.verdict = TuningVerdict::taken;
    incumbent_difference_ += row.difference;
    incumbent_ = with(incumbent_, row.choice);
    incumbent_plan_ = bench_.plan(incumbent_);
  }

  /// Rows that are faster; the others have their verdict, but where time was out.
  std::vector<size_t> race(std::vector<Runner> runners, bool exclusive) {
    std::vector<size_t> faster;
    for (int64_t heat = 0; heat < kMostHeats && !runners.empty(); ++heat) {
      if (!run_heat(runners, heat)) return faster;
      std::vector<std::vector<HeatFigure>> heats;
      for (const Runner& each : runners) heats.push_back(each.heats);
      const std::vector<RaceState> states = race_states(heats, spread_, exclusive);
      std::vector<Runner> left;
      for (size_t i = 0; i < runners.size(); ++i) {
        if (judge(runners[i], states[i]))
          left.push_back(std::move(runners[i]));
        else if (states[i] == RaceState::faster)
          faster.push_back(runners[i].row);
        if (states[i] != RaceState::running) spread_.add(heats[i]);
      }
      runners = std::move(left);
    }
    for (const Runner& each : runners) {
      result_.rows[each.row].verdict = TuningVerdict::no_difference;
      result_.rows[each.row].reason = "its runs have too few steps to tell its time: --steps";
    }
    return faster;
  }

  /// Fills in what is known. Does it go on?
  bool judge(const Runner& runner, RaceState state) {
    TuningRow& row = result_.rows[runner.row];
    if (row.verdict == TuningVerdict::failed) return false;
    if (runner.heats.empty()) return true;
    HeatSpread spread = spread_;
    spread.add(runner.heats);
    constexpr double kTail = 0.025;
    const Standing now = standing(runner.heats, spread, kTail);
    row.heats = std::ssize(runner.heats);
    row.difference = now.difference;
    row.low = now.low;
    row.high = now.high;
    switch (state) {
      case RaceState::running: return true;
      case RaceState::slower: row.verdict = TuningVerdict::slower; break;
      case RaceState::behind:
        row.verdict = TuningVerdict::slower;
        row.reason = "than the best of its kind";
        break;
      case RaceState::no_difference: row.verdict = TuningVerdict::no_difference; break;
      case RaceState::faster: break;
    }
    return false;
  }

  /// Those that fit in memory beside the incumbent, few enough that rounds stay short; one at least.
  size_t group_end(const std::vector<Runner>& runners, size_t begin) const {
    int64_t bytes = incumbent_plan_.planned_bytes + incumbent_plan_.process_bytes;
    size_t end = begin;
    while (end < runners.size() && end - begin + 1 < kMostOfAHeat) {
      bytes += runners[end].bytes;
      if (end > begin && options_.memory_bytes > 0 && bytes > options_.memory_bytes) break;
      ++end;
    }
    return end;
  }

  /// False: stopped, or no time.
  bool run_heat(std::vector<Runner>& runners, int64_t heat) {
    for (size_t begin = 0; begin < runners.size();) {
      const size_t end = group_end(runners, begin);
      std::vector<TuningPoint> points = {incumbent_};
      for (size_t i = begin; i < end; ++i) points.push_back(runners[i].point);
      if (run_seconds_ * static_cast<double>(points.size()) > seconds_left()) return false;
      say(fmt::format("heat {}, {} runs", heat + 1, points.size()));
      const double before = bench_.seconds();
      // A turn is a small part of a run: who takes a multiple of one for it is hopeless.
      const HeatLimits limits{std::max(kLeastLimit, kMostRunsOfATurn * run_seconds_),
                              seconds_left()};
      const std::vector<MeasuredRun> runs = bench_.heat(points, steps_, limits);
      if (runs.empty()) {
        stopped_ = true;
        return false;
      }
      if (!runs[0].ok() && seconds_left() <= 0) return false;  // time was out for all of them
      if (!runs[0].ok())
        throw DataError(fmt::format("lab: what ran before runs no more: {}", runs[0].reason));
      run_seconds_ = (bench_.seconds() - before) / static_cast<double>(points.size());
      if (incumbent_ == result_.start) note_base(runs[0]);
      for (size_t i = begin; i < end; ++i) note(runners[i], runs[0], runs[i - begin + 1]);
      begin = end;
    }
    return true;
  }

  void note(Runner& runner, const MeasuredRun& incumbent, const MeasuredRun& run) {
    TuningRow& row = result_.rows[runner.row];
    if (!run.ok() && seconds_left() <= 0) return;  // nobody can tell whether it would have ended
    if (!run.ok()) {
      row.verdict = TuningVerdict::failed;
      row.reason = run.reason;
      return;
    }
    fill_memory(row, run);
    const HeatFigure figure = heat_figure(incumbent, run);
    if (!std::isfinite(figure.difference)) return;
    runner.heats.push_back(figure);
    from_base_[runner.row] = incumbent_difference_ + std::log(run.samples_per_step / base_samples_);
  }

  void note_base(const MeasuredRun& run) {
    const double seconds = run.median_step_seconds();
    if (seconds > 0 && !(result_.base.measured_seconds <= seconds))
      result_.base.measured_seconds = seconds;
    base_samples_ = run.samples_per_step;
    fill_memory(result_.base, run);
  }

  /// All at the pace of the base's fastest heat: what the machine did beside in another heat is in none of them.
  void tell_step_seconds() {
    for (size_t i = 0; i < result_.rows.size(); ++i)
      if (TuningRow& row = result_.rows[i]; row.heats > 0)
        row.measured_seconds =
            result_.base.measured_seconds * std::exp(from_base_[i] + row.difference);
  }

  const Config& config_;
  const SearchOptions& options_;
  TuningBench& bench_;
  const StopRequest& stop_;
  const std::function<void(const std::string&)>& progress_;
  Tuning result_;
  TuningPoint incumbent_;
  ArmPlan incumbent_plan_;
  double incumbent_difference_ = 0;  ///< log(seconds per sample / the base's)
  double base_samples_ = 0;          ///< of a step
  /// By row: log(seconds of a step of what it would replace, with its own samples / the base's).
  std::vector<double> from_base_;
  HeatSpread spread_;
  std::string doing_;
  size_t at_ = 0;
  int64_t steps_ = 0;
  double run_seconds_ = 0;  ///< of a run in the last heat
  bool stopped_ = false;
};

}  // namespace

std::vector<TuningPoint> memory_ladder(const Config& config) {
  const Switch some = setting("engine.recompute", "auto", config);
  const Switch parts = setting("engine.accumulate", "auto", config);
  const Switch alone = setting("engine.parallel_microbatches", "1", config);
  const Switch full = setting("engine.recompute", "full", config);
  std::vector<TuningPoint> ladder = {{alone},       {some},         {some, alone},
                                     {full, alone}, {parts, alone}, {full, parts, alone}};
  if (resolved_device(config.engine.device).starts_with("cuda") && !has_moments_in_host(config))
    ladder.push_back({setting("engine.offload", "optimizer", config)});
  return ladder;
}

Tuning search_tuning(const Config& config, const std::vector<Coordinate>& space,
                     const SearchOptions& options, TuningBench& bench, const StopRequest& stop,
                     const std::function<void(const std::string& doing)>& progress) {
  return Search(config, options, bench, stop, progress).run(space);
}

}  // namespace fullbore
