#include "fullbore/train/trainer.h"

#include <fmt/format.h>

#include <cmath>
#include <csignal>
#include <cstring>
#include <filesystem>

#include "fullbore/base/files.h"
#include "fullbore/base/text.h"
#include "fullbore/monitor/machine.h"
#include "fullbore/monitor/process.h"
#include "fullbore/train/interrupt.h"
#include "fullbore/train/run_reporter.h"

namespace fullbore {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

int64_t parameter_count(const State& state) {
  int64_t count = 0;
  for (const StateEntry& entry : state.entries())
    if (entry.role == Role::parameter || entry.role == Role::frozen) count += entry.type.elements();
  return count;
}

RunRecord to_record(const RunPosition& position) {
  RunRecord record;
  record.step = position.step;
  record.data_position = static_cast<uint64_t>(position.step);
  record.metrics = {{"train_loss", position.train_loss},
                    {"validation_loss", position.validation_loss},
                    {"best_validation_loss", position.best_validation_loss},
                    {"best_step", static_cast<double>(position.best_step)},
                    {"evaluated_step", static_cast<double>(position.evaluated_step)}};
  return record;
}

RunPosition to_position(const RunRecord& record) {
  const auto metric = [&](const char* name, double unknown) {
    const auto found = record.metrics.find(name);
    return found == record.metrics.end() ? unknown : found->second;
  };
  const auto step = [&](const char* name) {
    const double value = metric(name, -1);
    return value >= 0 && value <= static_cast<double>(record.step) ? static_cast<int64_t>(value)
                                                                   : -1;
  };
  RunPosition position;
  position.step = record.step;
  position.evaluated_step = step("evaluated_step");
  position.best_step = step("best_step");
  position.train_loss = metric("train_loss", RunPosition::kUnknown);
  position.validation_loss = metric("validation_loss", RunPosition::kUnknown);
  position.best_validation_loss = metric("best_validation_loss", RunPosition::kUnknown);
  return position;
}

class Trainer {
 public:
  Trainer(const TrainingJob& job, const RunDirectory& run, Console& console,
          Clock::time_point start)
      : job_(job),
        options_(job.options),
        run_(run),
        reporter_(run, console, start),
        team_(options_.workers > 0 ? options_.workers : available_processors()) {}

  ExitCode run(bool resume) {
    try {
      measure_machine();
      const TracedStep step =
          trace_training_step(job_.loss, job_.training->fields(), options_.optimizer);
      state_ = initial_state(step, options_.seed);
      if (resume && !restore()) return ExitCode::kOk;
      if (job_.initialize && position_.step == 0) {
        job_.initialize(state_);
        start_averages(state_);
      }
      prepare(step);
      loop();
    } catch (const std::exception& error) {
      // A run that could not be resumed keeps the summary that it had.
      if (begun_ || !resume) reporter_.finish("failed", error.what());
      throw;
    }
    if (finished()) {
      reporter_.finish("completed");
      return ExitCode::kOk;
    }
    reporter_.finish("interrupted");
    reporter_.log().info("{}: saved in {}; go on with --resume", strsignal(interrupt_.signal()),
                         run_.path());
    return ExitCode::kInterrupted;
  }

 private:
  void measure_machine() {
    reporter_.console().live("measuring the machine");
    machine_ = known_machine(team_);
    forget_peak_resident_bytes();  // the summary's peak is the run's, not the yardstick's
  }

  /// False if the run is complete already.
  bool restore() {
    std::vector<std::string> passed_over;
    const std::optional<RunRecord> record =
        load_last(run_, job_.tokenizer, job_.identity, state_, passed_over);
    for (const std::string& reason : passed_over) reporter_.log().warn("{}", reason);
    if (!record) {
      reporter_.log().info("{} holds no checkpoint yet: starting at step 0", run_.path());
      return true;
    }
    if (record->seed != options_.seed)
      throw UsageError(
          fmt::format("the run was started with run.seed={}, not {}", record->seed, options_.seed));
    if (state_.span<int64_t>("step")[0] != record->step)
      throw DataError(fmt::format("{}: metadata say step {}, the State says {}", run_.path(),
                                  record->step, state_.span<int64_t>("step")[0]));
    position_ = to_position(*record);
    if (position_.step > options_.steps)
      throw UsageError(fmt::format("{} is at step {} already, past train.steps = {}", run_.path(),
                                   position_.step, options_.steps));
    if (finished()) {
      reporter_.log().info("{} is complete at step {}: set train.steps higher to go on",
                           run_.path(), position_.step);
      return false;
    }
    reporter_.log().info("resumed {} at step {}", run_.path(), position_.step);
    return true;
  }

  void prepare(const TracedStep& step) {
    reporter_.console().live("compiling");
    const Status written = write_file_atomically(run_.config(), job_.config);
    if (!written) throw DataError(written.error());
    const Clock::time_point start = Clock::now();
    program_.emplace(Program::compile(step.graph, state_, team_, options_.compile));
    if (job_.validation)
      evaluator_.emplace(job_.loss, *job_.validation, state_, team_, options_.compile,
                         options_.evaluate);
    loss_output_ = program_->output("loss");
    norm_output_ = program_->output("gradient_norm");
    rate_output_ = program_->output("learning_rate");
    loader_.emplace(job_.training, options_.loader);
    loader_->seek(static_cast<uint64_t>(position_.step));
    begin(seconds_between(start, Clock::now()));
  }

  void begin(double compile_seconds) {
    const Plan& plan = program_->plan();
    RunScale scale;
    scale.total_steps = options_.steps;
    scale.tokens_per_step = job_.tokens_per_step;
    scale.parameters = parameter_count(state_);
    scale.flops_per_step = plan.flops;
    scale.peak_flops = machine_.peaks.fp32_flops;
    scale.planned_bytes = plan.peak_bytes();
    // Both programs work on one State, but each has an arena of its own.
    if (evaluator_)
      scale.planned_bytes += evaluator_->plan().peak_bytes() - evaluator_->plan().state_bytes;
    scale.evaluation_interval = evaluator_ ? options_.evaluation_interval : 0;
    reporter_.log().info("{} parameters  {}FLOP per step  {} planned  compiled in {}",
                         count_text(static_cast<double>(scale.parameters)), count_text(plan.flops),
                         bytes_text(static_cast<double>(scale.planned_bytes)),
                         duration_text(compile_seconds));
    reporter_.log().info("{} workers  at best {:.2f} ms per step by this machine's roofline{}",
                         team_.workers(), roofline_seconds(plan, machine_.peaks) * 1e3,
                         machine_.busy ? " (measured while it was busy)" : "");
    reporter_.begin(scale, position_);
    begun_ = true;
  }

  void loop() {
    while (!interrupt_.requested()) {
      if (evaluation_due()) {
        evaluate();
        continue;  // an evaluation may have been cut short by a signal
      }
      if (checkpoint_due()) save();
      if (position_.step == options_.steps) return;
      run_step();
    }
    if (unsaved_) save();
  }

  bool evaluation_due() const {
    if (!evaluator_ || position_.evaluated_step == position_.step) return false;
    const int64_t interval = options_.evaluation_interval;
    return position_.step == options_.steps || (interval > 0 && position_.step % interval == 0);
  }

  bool checkpoint_due() const {
    if (!unsaved_) return false;
    const int64_t interval = options_.checkpoint_interval;
    return position_.step == options_.steps || (interval > 0 && position_.step % interval == 0);
  }

  bool finished() const {
    return position_.step == options_.steps &&
           (!job_.validation || position_.evaluated_step == position_.step);
  }

  void run_step() {
    const Clock::time_point start = Clock::now();
    const std::span<const void* const> batch = loader_->next();
    const Clock::time_point ready = Clock::now();
    program_->run(batch);
    const Clock::time_point done = Clock::now();
    ++position_.step;
    unsaved_ = true;
    const StepMetrics metrics = {read(loss_output_), read(norm_output_), read(rate_output_)};
    if (!std::isfinite(metrics.loss) || !std::isfinite(metrics.gradient_norm)) fail(metrics);
    position_.train_loss = metrics.loss;
    reporter_.step_done(position_.step, metrics, seconds_between(ready, done),
                        seconds_between(start, ready));
    if (position_.step % options_.log_interval == 0 || position_.step == options_.steps)
      reporter_.log_step();
  }

  double read(int output) const {
    return double{*static_cast<const float*>(program_->result(output))};
  }

  /// The State holds what came of the bad numbers: it is not saved.
  [[noreturn]] void fail(const StepMetrics& metrics) const {
    const bool saved = std::filesystem::exists(run_.last_checkpoint());
    throw NumericalError(fmt::format(
        "step {} is not finite: loss {}, gradient norm {}, learning rate {:.3g}. {} Try a lower "
        "optim.learning_rate, a longer warm-up or a smaller optim.clip_norm.",
        position_.step, metrics.loss, metrics.gradient_norm, metrics.learning_rate,
        saved ? fmt::format("The last good state is {}.", run_.last_checkpoint())
              : "Nothing had been saved yet."));
  }

  void evaluate() {
    const Clock::time_point start = Clock::now();
    const std::optional<double> loss = evaluator_->evaluate([&](uint64_t done) {
      reporter_.evaluating(done, evaluator_->batches());
      return !interrupt_.requested();
    });
    if (!loss) return;
    if (!std::isfinite(*loss))
      throw NumericalError(
          fmt::format("the validation loss at step {} is {}", position_.step, *loss));
    const bool best = !(*loss >= position_.best_validation_loss);  // true too where none is known
    position_.evaluated_step = position_.step;
    position_.validation_loss = *loss;
    if (best) {
      position_.best_validation_loss = *loss;
      position_.best_step = position_.step;
    }
    unsaved_ = true;
    reporter_.evaluated(position_, seconds_between(start, Clock::now()));
    if (best) save_best(run_, state_, record(), job_.identity);
  }

  RunRecord record() const {
    RunRecord record = to_record(position_);
    record.seed = options_.seed;
    record.config = job_.config;
    record.tokenizer = job_.tokenizer;
    return record;
  }
  void save() {
    save_last(run_, state_, record(), job_.identity);
    unsaved_ = false;
  }

  const TrainingJob& job_;
  const TrainingOptions& options_;
  const RunDirectory& run_;
  const InterruptGuard interrupt_;
  RunReporter reporter_;
  Team team_;
  Machine machine_;
  State state_;
  std::optional<Program> program_;
  std::optional<Evaluator> evaluator_;
  std::optional<Loader> loader_;
  int loss_output_ = -1;
  int norm_output_ = -1;
  int rate_output_ = -1;
  RunPosition position_;
  bool begun_ = false;
  bool unsaved_ = false;  ///< something happened since the last checkpoint
};

}  // namespace

ExitCode train(const TrainingJob& job, const RunDirectory& run, Console& console, bool resume,
               std::chrono::steady_clock::time_point start) {
  return Trainer(job, run, console, start).run(resume);
}

}  // namespace fullbore
