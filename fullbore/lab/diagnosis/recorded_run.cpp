#include "fullbore/lab/diagnosis/recorded_run.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "fullbore/base/files.h"
#include "fullbore/base/private_folder.h"
#include "fullbore/base/threads.h"
#include "fullbore/device/registry.h"
#include "fullbore/lab/diagnosis/idle_parameters.h"
#include "fullbore/monitor/process.h"
#include "fullbore/monitor/run_summary.h"
#include "fullbore/monitor/summary_file.h"
#include "fullbore/train/batch_maker.h"
#include "fullbore/train/run_observer.h"
#include "fullbore/train/run_programs.h"

namespace fullbore {
namespace {

using Clock = std::chrono::steady_clock;

double thread_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// A source whose processor time is told.
class TimedSource : public BatchSource {
 public:
  explicit TimedSource(std::shared_ptr<const BatchSource> source) : source_(std::move(source)) {}
  const std::vector<BatchField>& fields() const override { return source_->fields(); }
  std::vector<std::vector<BatchField>> shapes() const override { return source_->shapes(); }
  size_t shape_at(uint64_t position) const override { return source_->shape_at(position); }
  void fill(uint64_t position, std::span<void* const> buffers) const override {
    const double before = thread_seconds();
    source_->fill(position, buffers);
    seconds_ += thread_seconds() - before;
  }
  double seconds() const { return seconds_; }

 private:
  std::shared_ptr<const BatchSource> source_;
  mutable std::atomic<double> seconds_ = 0;
};

/// Records all launches of all steps but the first.
class Recording : public RunObserver {
 public:
  Recording(int64_t steps, Clock::time_point start, const TimedSource* source, Console& console)
      : total_(steps), start_(start), source_(source), console_(console) {}

  void begun(RunPrograms& programs, const State& state) override {
    programs_ = &programs;
    state_ = &state;
    std::vector<const Plan*> plans;
    for (size_t shape = 0; shape < programs.shapes(); ++shape) {
      plans.push_back(&programs.step(shape).plan());
      programs.step(shape).program().set_profiling(true);
    }
    totals_.emplace(plans);
    planned_bytes_ = programs.planned_bytes();
    parameters_ = parameter_count(state);
  }

  void step_made(size_t shape, double seconds, const StepResults& results) override {
    ++steps_;
    console_.live(fmt::format("measuring step {}/{}", steps_, total_));
    for (const auto& [name, value] : results) {
      if (name == "loss") facts_.loss.push_back({steps_, value});
      if (name == "loss_scale") facts_.loss_scale.push_back({steps_, value});
    }
    if (steps_ == 1) {
      filled_before_ = source_ ? source_->seconds() : 0;
      return;
    }
    const Program& program = programs_->step(shape).program();
    totals_->add(program.events(), seconds, shape, program.iterations_made());
  }

  void ended(const PhaseSeconds& seconds) override {
    phases_ = seconds;
    wall_seconds_ = std::chrono::duration<double>(Clock::now() - start_).count();
    if (source_) facts_.loader_seconds = source_->seconds() - filled_before_;
    facts_.steps = steps_;
    facts_.idle_parameters = idle_parameters(*state_);
    machine_ = settle_peaks(
        known_machine(state_->device()),
        [&](const MachinePeaks& peaks) {
          double roofline = 0;
          for (const KernelClass& kernel : totals_->classes(peaks))
            roofline += kernel.roofline_seconds;
          return totals_->step_seconds() > 0 ? roofline / totals_->step_seconds() : 0;
        },
        [&] { return refresh_machine(state_->device()); });
    recorded_ = {.step_seconds = totals_->step_seconds(),
                 .kernels = totals_->classes(machine_.peaks),
                 .idle_seconds = totals_->idle_seconds()};
    facts_.threads = state_->device().facts().workers;
    unrecorded_ = totals_->dropped();
  }

  void started(const std::vector<StartPart>& parts) { parts_ = parts; }

  /// `summary`: what the run has left.
  RecordedRun result(const nlohmann::json& summary) const {
    RecordedRun run;
    run.facts = facts_;
    // Each save copies the same State; the first one belongs to the start.
    const auto saves = summary.at("saves").get<double>();
    const double stall = summary.at("save_stall_seconds").get<double>() / std::max(1.0, saves);
    run.counts.saves = std::max(1.0, saves - 1);
    run.facts.measured =
        attribute(wall_seconds_, phases_, parts_, recorded_, stall * run.counts.saves);
    run.facts.planned_bytes = static_cast<double>(planned_bytes_);
    run.facts.fallbacks = fallbacks_of(summary);
    run.machine = machine_;
    run.unrecorded_launches = unrecorded_;
    run.parameters = parameters_;
    run.counts.steps = static_cast<double>(steps_ - 1);
    double launches = 0;
    for (const KernelClass& kernel : recorded_.kernels) launches += kernel.launches;
    run.launches_per_step = launches / std::max(1.0, run.counts.steps);
    return run;
  }

 private:
  int64_t total_;
  Clock::time_point start_;
  const TimedSource* source_;
  Console& console_;
  RunPrograms* programs_ = nullptr;
  const State* state_ = nullptr;
  std::optional<LaunchTotals> totals_;
  RunFacts facts_;
  std::vector<StartPart> parts_;
  PhaseSeconds phases_;
  RecordedSteps recorded_;
  Machine machine_;
  double wall_seconds_ = 0;
  double filled_before_ = 0;
  int64_t planned_bytes_ = 0;
  int64_t parameters_ = 0;
  int64_t unrecorded_ = 0;
  int64_t steps_ = 0;
};

/// Evaluations and saves of a whole run, which evaluates before its first step and after its last one.
RunCounts counts_of(const TrainingOptions& options, double evaluation_batches) {
  const auto every = [&](int64_t interval) {
    return interval > 0
               ? std::floor(static_cast<double>(options.steps) / static_cast<double>(interval))
               : 0.0;
  };
  const bool evaluates_at_the_end =
      options.evaluation_interval <= 0 || options.steps % options.evaluation_interval != 0;
  const double evaluations = every(options.evaluation_interval) + (evaluates_at_the_end ? 1 : 0) +
                             (options.evaluation_interval > 0 ? 1 : 0);
  // An evaluation that is the best is saved; as if each were.
  const int64_t both = options.checkpoint_interval > 0 && options.evaluation_interval > 0
                           ? std::lcm(options.checkpoint_interval, options.evaluation_interval)
                           : 0;
  const bool saves_at_the_end =
      (options.checkpoint_interval <= 0 || options.steps % options.checkpoint_interval != 0) &&
      (options.evaluation_interval <= 0 || options.steps % options.evaluation_interval != 0);
  return {.steps = static_cast<double>(std::max<int64_t>(0, options.steps - 1)),
          .evaluated_batches = evaluations * evaluation_batches,
          .saves = every(options.checkpoint_interval) + every(options.evaluation_interval) -
                   every(both) + (saves_at_the_end ? 1 : 0)};
}

}  // namespace

std::optional<RecordedRun> record_run(TrainingJob job, const Config& config,
                                      const RecordedRunOptions& options, const std::string& run,
                                      Console& console, Clock::time_point start) {
  const double batches = job.validation ? static_cast<double>(job.validation->batches) : 0;
  const RunCounts planned = counts_of(job.options, batches);
  if (job.validation)
    job.validation->batches = std::min(job.validation->batches, options.evaluation_batches);
  std::shared_ptr<TimedSource> source;
  if (!job.maker) job.training = source = std::make_shared<TimedSource>(job.training);
  job.options.steps = std::max<int64_t>(2, options.steps);
  job.options.evaluation_interval = 0;
  job.options.checkpoint_interval = 0;
  job.options.patience = 0;
  job.options.detail = Detail::info;
  job.options.sinks = {};
  const auto recording =
      std::make_shared<Recording>(job.options.steps, start, source.get(), console);
  job.observer = recording;
  job.started = [&](const std::vector<StartPart>& parts) { recording->started(parts); };
  const Descriptor nowhere(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  if (!nowhere.ok()) throw DataError("cannot open /dev/null");
  Console silent(nowhere.get());
  console.live("tracing and compiling");
  const ExitCode code = train(job, RunDirectory::create(run), silent, false, start);
  console.clear();
  if (code != ExitCode::kOk) return std::nullopt;

  RecordedRun result = recording->result(read_summary(run + "/summary.json").take_or_throw().json);
  result.planned = planned;
  result.evaluation_batches = batches;
  result.counts.evaluated_batches =
      job.validation ? static_cast<double>(job.validation->batches) : 0;
  RunFacts& facts = result.facts;
  facts.config = config;
  facts.whole = project(facts.measured, result.counts, result.planned);
  facts.processors = available_processors();
  facts.native_bf16 = result.machine.native_bf16;
  facts.bf16_speed = result.machine.peaks.bf16_flops / result.machine.peaks.fp32_flops;
  facts.memory_bytes = static_cast<double>(memory_limit_bytes());
  facts.resident_bytes = static_cast<double>(peak_resident_bytes());
  return result;
}

SwitchFacts switch_facts(const TrainingJob& job, const Config& config, const Machine& machine) {
  SwitchFacts facts{.native_bf16 = machine.native_bf16,
                    .passes = {},
                    .all_passes = {},
                    .makes_batches = job.maker != nullptr,
                    .has_validation = job.validation.has_value()};
  const bool asks = config.engine.recompute != "off" || !config.engine.disabled_passes.empty();
  if (!asks) return facts;
  CompileOptions options = job.options.compile;
  options.plan_folder.clear();  // a kept plan tells nothing of its passes
  const std::shared_ptr<Device> device =
      open_device(job.options.device, job.options.workers, job.options.moments_in_host);
  const Graph graph = trace_steps(job).front().graph;
  const auto passes = [&] {
    CompileReport report;
    (void)compile_plan(graph, *device, *device->compiler(), options, &report);
    return report.passes;
  };
  facts.passes = passes();
  if (config.engine.disabled_passes.empty()) return facts;
  options.passes.disabled.clear();
  facts.all_passes = passes();
  return facts;
}

}  // namespace fullbore
