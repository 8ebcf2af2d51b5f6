#include "fullbore/train/trainer.h"

#include <fmt/format.h>

#include <cmath>
#include <csignal>
#include <cstring>
#include <utility>

#include "fullbore/base/files.h"
#include "fullbore/base/text.h"
#include "fullbore/monitor/machine.h"
#include "fullbore/monitor/process.h"
#include "fullbore/train/bad_step.h"
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

// Each holds the whole State; the first ones say what went wrong.
constexpr int kMostBadSteps = 3;

class Trainer {
 public:
  Trainer(const TrainingJob& job, const RunDirectory& run, Console& console,
          Clock::time_point start)
      : job_(job),
        options_(job.options),
        run_(run),
        reporter_(run, console, start),
        store_(run.checkpoints(), options_.saves.keep),
        team_(options_.workers > 0 ? options_.workers : available_processors()) {}

  ExitCode run(bool resume) {
    try {
      store_.remove_stale();
      measure_machine();
      TracedStep step = trace_training_step(job_.loss, job_.training->fields(), options_.optimizer);
      state_ = initial_state(step, options_.seed);
      if (resume && !restore()) return ExitCode::kOk;
      if (job_.initialize && position_.step == 0) {
        job_.initialize(state_);
        start_averages(state_);
      }
      graph_ = with_metrics(step.graph, options_.metrics);
      prepare();
      interrupt_.emplace();
      loop();
      saver_->finish();
    } catch (const std::exception& error) {
      // A run that could not be resumed keeps the summary that it had.
      if (begun_ || !resume) finish("failed", error.what());
      throw;
    }
    if (complete()) {
      finish("completed");
      return ExitCode::kOk;
    }
    finish("interrupted");
    reporter_.log().info("{}: saved in {}; go on with --resume", strsignal(interrupt_->signal()),
                         run_.path());
    return ExitCode::kInterrupted;
  }

 private:
  void finish(const std::string& status, const std::string& error = "") {
    if (saver_) reporter_.saved(saver_->saves(), saver_->stall_seconds());
    reporter_.finish(status, error);
  }

  void measure_machine() {
    reporter_.console().live("measuring the machine");
    machine_ = known_machine(team_);
    forget_peak_resident_bytes();  // the summary's peak is the run's, not the yardstick's
  }

  /// False if the run is complete already.
  bool restore() {
    std::vector<std::string> passed_over;
    const std::optional<RunRecord> record =
        load_last(run_, store_, job_.tokenizer, job_.identity, state_, passed_over);
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
    if (complete()) {
      reporter_.log().info(
          "{} is complete at step {}: {} to go on", run_.path(), position_.step,
          out_of_patience() ? "set train.early_stopping higher" : "set train.steps higher");
      RunScale scale;
      scale.total_steps = options_.steps;
      scale.parameters = parameter_count(state_);
      reporter_.found_complete(scale, position_);
      return false;
    }
    restored_ = true;
    reporter_.log().info("resumed {} at step {}", run_.path(), position_.step);
    return true;
  }

  void prepare() {
    const Status written = write_file_atomically(run_.config(), job_.config);
    if (!written) throw DataError(written.error());
    saver_.emplace(store_, state_, team_, options_.saves);
    // Written while the step compiles: from here on there is always something to go on from, and a
    // folder that cannot be written to is met now, not at the first checkpoint.
    if (!restored_) save(false);
    reporter_.console().live("compiling");
    const Clock::time_point start = Clock::now();
    program_.emplace(Program::compile(graph_, state_, team_, options_.compile));
    if (job_.validation)
      evaluator_.emplace(job_.loss, *job_.validation, state_, team_, options_.compile,
                         options_.evaluate);
    for (size_t i = 0; i < graph_.outputs().size(); ++i)
      if (graph_.outputs()[i].updates < 0 && graph_.outputs()[i].name != "skipped")
        results_.emplace_back(graph_.outputs()[i].name, static_cast<int>(i));
    loss_output_ = program_->output("loss");
    skipped_output_ = graph_.find_output("skipped");
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
    scale.planned_bytes = plan.peak_bytes() + (options_.saves.background ? plan.state_bytes : 0);
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
    reporter_.begin(scale, position_, options_.sinks);
    begun_ = true;
  }

  void loop() {
    while (!interrupt_->requested()) {
      saver_->check();
      if (evaluation_due()) {
        evaluate();
        continue;  // an evaluation may have been cut short by a signal
      }
      if (checkpoint_due()) save(false);
      if (complete()) return;
      run_step();
    }
    if (unsaved_) save(false);
  }

  bool evaluation_due() const {
    if (!evaluator_ || position_.evaluated_step == position_.step) return false;
    const int64_t interval = options_.evaluation_interval;
    return position_.step == options_.steps || (interval > 0 && position_.step % interval == 0);
  }

  bool checkpoint_due() const {
    if (!unsaved_) return false;
    if (complete()) return true;
    // Amid steps that are skipped there is nothing new: what is on the disk is from before them.
    const int64_t interval = options_.checkpoint_interval;
    return interval > 0 && position_.step % interval == 0 && position_.skipped_in_row == 0;
  }

  bool out_of_patience() const {
    return options_.patience > 0 && position_.evaluations_since_best >= options_.patience;
  }

  bool complete() const {
    if (out_of_patience()) return true;
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
    const double loss = read(loss_output_);
    reporter_.step_done(position_.step, loss, seconds_between(ready, done),
                        seconds_between(start, ready));
    if (is_skipped()) {
      skip(batch);
      return;
    }
    position_.skipped_in_row = 0;
    position_.train_loss = loss;
    if (position_.step % options_.log_interval == 0 || position_.step == options_.steps)
      reporter_.log_step(results());
  }

  bool is_skipped() const {
    if (skipped_output_ >= 0) return read(skipped_output_) != 0;
    const int norm = graph_.find_output("gradient_norm");
    return !std::isfinite(read(loss_output_)) || (norm >= 0 && !std::isfinite(read(norm)));
  }

  StepResults results() const {
    StepResults values;
    for (const auto& [name, output] : results_) values.emplace_back(name, read(output));
    return values;
  }

  double read(int output) const {
    return double{*static_cast<const float*>(program_->result(output))};
  }

  void skip(std::span<const void* const> batch) {
    std::string words = fmt::format("step {} is not finite:", position_.step);
    const char* comma = " ";
    for (const auto& [name, value] : results()) {
      words += fmt::format("{}{} {:.4g}", std::exchange(comma, ", "), name, value);
    }
    words += '.';
    // Without `skipped` the State holds what came of the bad numbers: it is not saved.
    if (skipped_output_ < 0) stop(words);
    ++position_.skipped_steps;
    ++position_.skipped_in_row;
    if (bad_steps_ < kMostBadSteps) words += keep_bad_step(batch);
    if (position_.skipped_in_row >= options_.max_skipped_steps)
      stop(fmt::format(
          "{} It is the last of {} in a row that were skipped (train.max_skipped_steps).", words,
          position_.skipped_in_row));
    reporter_.step_skipped(words + " It was skipped.");
  }

  /// Looks into the step and keeps it; returns what there is to say about it.
  std::string keep_bad_step(std::span<const void* const> batch) {
    ++bad_steps_;
    // The step's counter alone went on; random draws depend on it.
    int64_t& counter = state_.span<int64_t>("step")[0];
    --counter;
    BadStep step{position_.step, graph_, options_.compile, {}, ""};
    for (const auto& [name, value] : results()) step.results[name] = value;
    step.finding = first_non_finite(graph_, state_, batch, team_, options_.compile);
    ++counter;
    const std::string path = save_bad_step(run_.bad_steps(), step, state_, batch);
    return fmt::format(" {}{}See `fullbore replay-step {}`.", step.finding,
                       step.finding.empty() ? "" : ". ", path);
  }

  [[noreturn]] void stop(const std::string& words) {
    saver_->finish();
    const std::vector<std::string> saved = store_.list().take_or_throw();
    throw NumericalError(fmt::format(
        "{} {} Try a lower optim.learning_rate, a longer warm-up or a smaller optim.clip_norm.",
        words,
        saved.empty() ? "Nothing had been saved yet."
                      : fmt::format("The last good state is {}.", saved.front())));
  }

  void evaluate() {
    const Clock::time_point start = Clock::now();
    const std::optional<double> loss = evaluator_->evaluate([&](uint64_t done) {
      reporter_.evaluating(done, evaluator_->batches());
      return !interrupt_->requested();
    });
    if (!loss) return;
    if (!std::isfinite(*loss))
      throw NumericalError(
          fmt::format("the validation loss at step {} is {}", position_.step, *loss));
    const bool best = !(*loss >= position_.best_validation_loss);  // true too where none is known
    position_.evaluated_step = position_.step;
    position_.validation_loss = *loss;
    ++position_.evaluations_since_best;
    if (best) {
      position_.evaluations_since_best = 0;
      position_.best_validation_loss = *loss;
      position_.best_step = position_.step;
    }
    unsaved_ = true;
    reporter_.evaluated(position_, seconds_between(start, Clock::now()));
    if (best) save(true);
  }

  void save(bool best) {
    RunRecord record = to_record(position_);
    record.seed = options_.seed;
    record.identity = job_.identity;
    record.config = job_.config_json;
    record.tokenizer = job_.tokenizer;
    // Metrics of steps that the checkpoint knows of are not lost either. The first one knows of none.
    std::function<Status()> before;
    if (begun_) before = [this] { return reporter_.sync_metrics(); };
    saver_->save(record, best, std::move(before));
    unsaved_ = false;
  }

  const TrainingJob& job_;
  const TrainingOptions& options_;
  const RunDirectory& run_;
  RunReporter reporter_;
  CheckpointStore store_;
  Team team_;
  Machine machine_;
  State state_;
  Graph graph_;
  std::optional<RunSaver> saver_;
  std::optional<Program> program_;
  std::optional<Evaluator> evaluator_;
  std::optional<Loader> loader_;
  std::optional<InterruptGuard> interrupt_;
  std::vector<std::pair<std::string, int>> results_;  ///< the step's but `skipped`, by output
  int loss_output_ = -1;
  int skipped_output_ = -1;  ///< or -1: the step updates the State whatever comes
  int bad_steps_ = 0;        ///< kept since the start or resume
  RunPosition position_;
  bool restored_ = false;
  bool begun_ = false;
  bool unsaved_ = false;  ///< something happened since the last checkpoint
};

}  // namespace

ExitCode train(const TrainingJob& job, const RunDirectory& run, Console& console, bool resume,
               std::chrono::steady_clock::time_point start) {
  return Trainer(job, run, console, start).run(resume);
}

}  // namespace fullbore
