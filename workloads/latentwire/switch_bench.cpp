#include "workloads/latentwire/switch_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "fullbore/base/error.h"
#include "fullbore/monitor/component_times.h"
#include "fullbore/monitor/process.h"
#include "fullbore/train/step_runner.h"

namespace fullbore::latentwire {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kMostAccuracyLost = 0.01;
constexpr int64_t kSettled = 20;   // steps until nothing more is reserved
constexpr int64_t kRecorded = 10;  // steps at most, the last ones

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

/// Runs one stage after the other.
class SwitchBench {
 public:
  SwitchBench(const std::vector<std::string>& receivers, const JobOf& job,
              const SwitchBenchOptions& options,
              const std::function<void(const std::string&, double)>& progress)
      : receivers_(receivers), job_(job), options_(options), progress_(progress) {}

  std::vector<SwitchStage> run(Config config) {
    for (const Switch& each : all_switches())
      if (each.has_two_paths()) set_switch(config, each, false);
    std::vector<SwitchStage> stages = {measured(config, nullptr)};
    const SwitchStage all_off = stages.front();
    for (const Switch* each : options_.tried) {
      stages_done_ = static_cast<double>(stages.size());
      Config with = config;
      set_switch(with, *each, true);
      SwitchStage stage{.added = each};
      try {
        stage = measured(with, each);
        compare(stage, all_off, tolerance_of(with));
      } catch (const UsageError& error) {
        stage.reason = error.what();
      } catch (const MemoryError& error) {
        stage.reason = error.what();
      }
      stage.kept = stage.reason.empty();
      if (stage.kept) config = std::move(with);
      stages.push_back(std::move(stage));
    }
    return stages;
  }

 private:
  SwitchStage measured(const Config& config, const Switch* added) {
    const std::string name = added == nullptr ? "all off" : std::string(added->name);
    tell(name + ", compiling", 0);
    forget_peak_resident_bytes();
    TrainingJob job = job_(config);
    job.options.metrics = MetricsLevel::all;
    StepRunner runner(job);
    std::vector<ComponentTimes> components;
    for (size_t shape = 0; shape < runner.shapes(); ++shape)
      components.emplace_back(runner.plan(shape));
    SwitchStage stage{.added = added};
    std::vector<double> seconds;
    std::vector<double> models;
    double waited = 0, all = 0;
    int64_t settled = 0;
    const int64_t recorded = std::min(kRecorded, (options_.steps + 1) / 2);
    for (int64_t step = 0; step < options_.steps; ++step) {
      const bool records = step + recorded >= options_.steps;
      if (step == kSettled) settled = resident_bytes();
      if (step + recorded == options_.steps) {
        if (settled > 0) stage.growth_bytes = resident_bytes() - settled;
        for (size_t shape = 0; shape < runner.shapes(); ++shape)
          runner.program(shape).set_profiling(true);
      }
      const StepRunner::Step made = runner.run();
      stage.losses.push_back(made.loss);
      seconds.push_back(made.run_seconds);
      waited += made.wait_seconds;
      all += made.seconds();
      Program& program = runner.program(made.shape);
      if (records) {
        models.push_back(model_seconds(components[made.shape], program, made.run_seconds));
        for (const std::string& receiver : receivers_)
          stage.first_accuracy += program.scalar(receiver + "_first_accuracy") /
                                  static_cast<double>(std::ssize(receivers_) * recorded);
      }
      tell(fmt::format("{}, step {} of {}", name, step + 1, options_.steps),
           static_cast<double>(step + 1) / static_cast<double>(options_.steps));
    }
    stage.step_seconds = median(std::move(seconds));
    stage.wait_share = waited / all;
    stage.model_seconds = median(std::move(models));
    stage.planned_bytes = runner.planned_bytes();
    stage.resident_bytes = peak_resident_bytes();
    return stage;
  }

  static double model_seconds(const ComponentTimes& times, const Program& program,
                              double step_seconds) {
    double sum = 0;
    for (const ComponentTime& each : times.of(program.events(), step_seconds))
      if (each.component.starts_with("receivers.")) sum += each.seconds;
    return sum;
  }

  static void compare(SwitchStage& stage, const SwitchStage& all_off, double tolerance) {
    for (size_t i = 0; i < stage.losses.size(); ++i) {
      const double difference =
          std::abs(stage.losses[i] - all_off.losses[i]) / std::abs(all_off.losses[i]);
      // A loss that is no number differs from all.
      if (!(difference <= stage.loss_difference)) stage.loss_difference = difference;
      if (!(difference <= tolerance)) {
        stage.reason = fmt::format("the loss of step {} differs by {:.1e}, {:.0e} allowed", i + 1,
                                   difference, tolerance);
        break;
      }
    }
    const double lost = all_off.first_accuracy - stage.first_accuracy;
    if (stage.reason.empty() && lost > kMostAccuracyLost)
      stage.reason = fmt::format("first tokens are right less often by {:.1f} points", 100 * lost);
  }

  void tell(const std::string& doing, double share) const {
    const double done = stages_done_ + share, all = 1 + static_cast<double>(options_.tried.size());
    const double spent = seconds_since(start_);
    progress_(fmt::format("{:.0f} of {:.0f}: {}", stages_done_ + 1, all, doing),
              done > 0 ? spent * (all - done) / done : -1);
  }

  const std::vector<std::string>& receivers_;
  const JobOf& job_;
  const SwitchBenchOptions& options_;
  const std::function<void(const std::string&, double)>& progress_;
  const Clock::time_point start_ = Clock::now();
  double stages_done_ = 0;
};

}  // namespace

std::vector<SwitchStage> run_switch_bench(
    const Config& config, const std::vector<std::string>& receivers, const JobOf& job,
    const SwitchBenchOptions& options,
    const std::function<void(const std::string& doing, double seconds_left)>& progress) {
  return SwitchBench(receivers, job, options, progress).run(config);
}

}  // namespace fullbore::latentwire
