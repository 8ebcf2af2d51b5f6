#include "fullbore/train/trainer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstring>
#include <utility>

#include "fullbore/base/build_id.h"
#include "fullbore/base/files.h"
#include "fullbore/base/processor.h"
#include "fullbore/base/text.h"
#include "fullbore/device/device_error.h"
#include "fullbore/device/registry.h"
#include "fullbore/monitor/machine.h"
#include "fullbore/monitor/process.h"
#include "fullbore/train/bad_step.h"
#include "fullbore/train/batch_rows.h"
#include "fullbore/train/first_lines.h"
#include "fullbore/train/frozen_weights.h"
#include "fullbore/train/interrupt.h"
#include "fullbore/train/resume.h"
#include "fullbore/train/run_observer.h"
#include "fullbore/train/run_programs.h"
#include "fullbore/train/run_reporter.h"
#include "fullbore/train/step_batches.h"
#include "fullbore/train/step_detail.h"
#include "fullbore/train/turns.h"

namespace fullbore {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
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
        store_(run.checkpoints(), options_.saves.retention),
        device_(open_device(options_.device, options_.workers, options_.moments_in_host)) {}

  ExitCode run(bool resume) {
    reporter_.tell(job_.figures);
    try {
      store_.remove_stale();
      reporter_.started("data");
      trace();
      if (resume && !restore()) return ExitCode::kOk;
      if (job_.initialize && position_.step == 0) {
        job_.initialize(state_);
        start_ema(state_);
        for (const std::string& line : job_.initialized) reporter_.log().info("{}", line);
      }
      if (job_.maker && position_.step == 0) job_.maker->begin(state_);
      reporter_.started("state");
      prepare();
      interrupt_.emplace();
      turns_ = Turns::from_environment();
      loop();
      finish_saves();
    } catch (const std::exception& error) {
      // A run that could not be resumed keeps the summary that it had.
      if (begun_ || !resume) finish("failed", error.what());
      throw;
    }
    if (complete()) {
      if (job_.observer) job_.observer->ended(reporter_.phases().seconds());
      finish("completed");
      return ExitCode::kOk;
    }
    finish("interrupted");
    reporter_.log().info("{}: saved in {}; go on with: {}", strsignal(interrupt_->signal()),
                         run_.path(), options_.resume_command);
    return ExitCode::kInterrupted;
  }

 private:
  void finish(const std::string& status, const std::string& error = "") {
    if (saver_) reporter_.saved(saver_->saves(), saver_->stall_seconds());
    if (job_.maker)
      for (const std::string& line : job_.maker->last_words()) reporter_.log().info("{}", line);
    reporter_.finish(status, error);
  }

  /// The yardstick of rates: of an earlier run, or measured now. That takes a second, so it is done when the first
  /// step is made and not before; its arrays lie in the arena where that is large enough.
  void measure_machine() {
    const int64_t resident = peak_resident_bytes();
    std::optional<Machine> machine = kept_machine(device_->facts());
    if (!machine) {
      reporter_.console().live("measuring the machine");
      const int64_t most = options_.compile.memory_bytes;
      const int64_t left = std::max<int64_t>(most - reporter_.planned_bytes(), 0);
      machine = refresh_machine(*device_, {.bytes = most > 0 ? left : kAnyMemory,
                                           .lent = programs_->arena().address(),
                                           .lent_bytes = programs_->arena().bytes()});
      forget_peak_resident_bytes();  // the summary's peak is the run's, not the yardstick's
    }
    reporter_.measured(
        peak_flops(options_.compile.precision, machine->peaks, options_.compile.tf32), resident);
    const Plan& largest = programs_->largest_step();
    reporter_.log().info("{} workers  at best {:.2f} ms per step{} by this machine's roofline{}{}",
                         device_->facts().workers, roofline_seconds(largest, machine->peaks) * 1e3,
                         of_which_shape(),
                         has_open_loops(largest) ? ", were all loops to run to their ends" : "",
                         machine->busy ? " (measured while it was busy)" : "");
  }
  const char* of_which_shape() const {
    return programs_->shapes() > 1 ? " of the largest shape" : "";
  }

  /// One step for every shape of batch, and the State that they all ask for.
  void trace() {
    traced_ = trace_steps(job_);
    for (const std::vector<BatchField>& fields : job_.training->shapes())
      samples_.push_back(static_cast<double>(batch_rows(fields) * job_.samples_per_row));
    reporter_.started("trace");
    dead_losses_ = traced_.front().dead_losses;
    if (options_.compile.fp8) tell_fp8(traced_.front().fp8_layers);
    std::vector<LentEntry> lent;
    if (job_.frozen) lent = job_.frozen->lend(state_entries(traced_.front().graph));
    state_ = initial_state(traced_.front(), options_.seed, device_, lent, made_state_entries(job_));
    if (!job_.frozen) return;
    const Clock::time_point start = Clock::now();
    frozen_ = job_.frozen->record(state_);
    reporter_.log().info("frozen   {}: {} tensors, {}, read where they lie; hashed in {}",
                         job_.frozen->path(), frozen_.size(),
                         bytes_text(static_cast<double>(state_.lent_bytes())),
                         duration_text(seconds_between(start, Clock::now())));
  }

  void tell_fp8(const std::vector<std::string>& layers) {
    if (layers.empty())
      reporter_.log().warn(
          "engine.fp8=true changes nothing: the model has no matmul of a trained weight between "
          "its "
          "first and its last");
    else
      reporter_.log().info("fp8      {} matmuls of weights, with their gradients: {} to {}",
                           layers.size(), layers.front(), layers.back());
  }

  /// False if the run is complete already.
  bool restore() {
    const std::optional<RunPosition> position =
        restore_last(job_, run_, store_, state_, frozen_, reporter_.log());
    if (!position) return true;
    position_ = *position;
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
    run_.keep_config(job_.config, job_.given_config);
    saver_.emplace(store_, state_, options_.saves);
    // Written while the step compiles: from here on there is always something to go on from, and a
    // folder that cannot be written to is met now, not at the first checkpoint.
    if (!restored_) save(false);
    reporter_.started("save");
    const Clock::time_point start = Clock::now();
    programs_.emplace(job_, std::move(traced_), state_, [&](size_t done, size_t programs) {
      reporter_.console().live(fmt::format("compiling {}/{}", done + 1, programs));
    });
    if (options_.detail == Detail::debug_performance) recorder_.emplace(*programs_);
    batches_.emplace(job_, state_, *programs_);
    batches_->seek(static_cast<uint64_t>(position_.step));
    begin(seconds_between(start, Clock::now()));
    if (job_.observer) job_.observer->begun(*programs_, state_);
    reporter_.started("compile");
    meet_memory();
    reporter_.started("memory");
  }

  /// All that every step will write: inside the step it takes longer
  /// (docs/design/start.md).
  void meet_memory() {
    state_.make_resident();
    programs_->make_resident();
  }

  void begin(double compile_seconds) {
    RunScale scale = programs_->scale(job_.options, state_);
    scale.sample_unit = job_.sample_unit;
    scale.shown = job_.shown;
    const DeviceFacts device = device_->facts();
    scale.maker = {.build = build_id(),
                   .device = device.name,
                   .hardware = device.hardware,
                   .processor = std::string(processor_level_name(this_processor().level)),
                   .workers = device.workers,
                   .fallbacks = programs_->fallbacks()};
    for (const std::string& line : first_lines(job_, device)) reporter_.log().info("{}", line);
    for (const std::string& line : fallback_lines(programs_->fallbacks()))
      reporter_.log().warn("{}", line);
    for (const std::string& line : programs_->notices()) reporter_.log().warn("{}", line);
    reporter_.log().info(
        "{} parameters  {}{}FLOP per step{}  {} planned  {} programs compiled in {}",
        count_text(static_cast<double>(scale.parameters)), scale.flops_at_most ? "at most " : "",
        count_text(scale.flops_per_step), of_which_shape(),
        bytes_text(static_cast<double>(scale.planned_bytes)), programs_->count(),
        duration_text(compile_seconds));
    if (const int64_t frozen = frozen_count(state_); frozen > 0)
      reporter_.log().info("{} of the parameters are frozen: no gradient, no moments, no decay",
                           count_text(static_cast<double>(frozen)));
    if (!dead_losses_.empty())
      reporter_.log().info(
          "dead losses, which depend on no trained parameter and are metrics alone: {}",
          fmt::join(dead_losses_, ", "));
    reporter_.begin(scale, position_, options_.sinks, options_.sensors);
    begun_ = true;
  }

  void loop() {
    while (!interrupt_->requested() || !batches_->resumes_here()) {
      saver_->check();
      if (evaluation_due()) {
        reading_data([&] { evaluate(); });
        continue;  // an evaluation may have been cut short by a signal
      }
      if (checkpoint_due()) save(false);
      if (complete()) break;
      const bool may_leave = turns_ && !turns_->wait([this] { return interrupt_->requested(); });
      if (may_leave && batches_->resumes_here()) continue;
      run_step();
    }
    if (unsaved_) save(false);
    if (turns_) turns_->finish();
  }

  /// Data that can no longer be read end the run between two steps: what was learned since the last checkpoint is
  /// saved first.
  template <class Read>
  void reading_data(const Read& read) {
    try {
      read();
    } catch (const DataError&) {
      if (std::exchange(unsaved_, false)) save(false);
      saver_->finish();
      throw;
    }
  }

  bool evaluation_due() const {
    if (!job_.validation || position_.evaluated_step == position_.step) return false;
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

  /// A device that fails ends the run; the error says in which step.
  void run_on_device(CompiledStep& step, std::span<const void* const> batch) {
    try {
      step.run(batch);
    } catch (const DeviceError& error) {
      throw DeviceError(fmt::format("step {}: {}", position_.step + 1, error.what()));
    }
  }

  void run_step() {
    const Clock::time_point start = Clock::now();
    BatchMaker::Batch made;
    enter(job_.maker ? RunPhase::rollouts : RunPhase::data, start);
    reading_data([&] { made = batches_->next(); });
    if (job_.maker)
      for (const std::string& notice : job_.maker->take_notices())
        reporter_.log().warn("step {}: {}", position_.step + 1, notice);
    const auto [shape, batch] = made;
    CompiledStep& step = programs_->step(shape);
    const bool logged = options_.detail != Detail::off && log_due(position_.step + 1);
    if (recorder_) recorder_->begin(shape, logged && stepped_);
    const Clock::time_point ready = Clock::now();
    enter(RunPhase::step, ready);
    run_on_device(step, batch);
    const Clock::time_point done = Clock::now();
    enter(RunPhase::host, done);
    if (recorder_) recorder_->end(seconds_between(ready, done));
    if (!stepped_) {
      reporter_.first_step_made();
      if (job_.started) job_.started(reporter_.start_parts());
      measure_machine();
      stepped_ = true;
      enter(RunPhase::host);
    }
    if (job_.observer)
      job_.observer->step_made(shape, seconds_between(ready, done), step.results());
    batches_->step_made(step);
    ++position_.step;
    unsaved_ = true;
    reporter_.step_done(position_.step, step.loss(),
                        {.step_seconds = seconds_between(ready, done),
                         .wait_seconds = seconds_between(start, ready),
                         .tokens = step.predictions(static_cast<double>(job_.tokens_per_step)),
                         .samples = samples_[shape],
                         .flops = step.program().flops_made()},
                        [&] { return results_of(step); });
    if (step.is_bad()) {
      skip(step, batch);
    } else {
      position_.skipped_in_row = 0;
      position_.train_loss = step.loss();
      if (logged) log_step(step, {seconds_between(ready, done), seconds_between(start, ready)});
    }
    if (turns_) turns_->step_made(samples_[shape]);
  }

  /// Until the first step is made, all that belongs to no phase of its own is the start.
  void enter(RunPhase phase, Clock::time_point now = Clock::now()) {
    if (stepped_) reporter_.phases().enter(phase, now);
  }

  void finish_saves() {
    const PhaseClock::Within saving(reporter_.phases(), RunPhase::checkpoint);
    saver_->finish();
  }

  /// And of the batch that was made for it.
  StepResults results_of(const CompiledStep& step) const {
    StepResults results = step.results();
    const StepResults figures = batches_->figures();
    results.insert(results.end(), figures.begin(), figures.end());
    return results;
  }

  bool log_due(int64_t step) const {
    return step % options_.log_interval == 0 || step == options_.steps;
  }

  void log_step(const CompiledStep& step, StepDetails details) {
    details.detail = options_.detail;
    details.arena_bytes = programs_->arena().bytes();
    if (recorder_) {
      details.components = recorder_->times();
      if (const std::string notice = recorder_->take_notice(); !notice.empty())
        reporter_.log().info("{}", notice);
    }
    reporter_.log_step(results_of(step), details);
  }

  void skip(const CompiledStep& step, std::span<const void* const> batch) {
    if (const double scale = step.overflowed_scale(); scale > 0) {
      // That is how the scale is found: nothing is wrong with the run.
      ++position_.skipped_steps;
      ++position_.skipped_in_row;
      reporter_.step_skipped(
          fmt::format("step {} was skipped: its gradients overflow at a loss scale of {:.0f}, "
                      "which is lowered.",
                      position_.step, scale));
      return;
    }
    std::string words = fmt::format("step {} is not finite:", position_.step);
    const char* comma = " ";
    for (const auto& [name, value] : step.results()) {
      words += fmt::format("{}{} {:.4g}", std::exchange(comma, ", "), name, value);
    }
    words += '.';
    // What was updated holds what came of the bad numbers: it is not saved.
    if (!step.can_skip()) stop(words);
    ++position_.skipped_steps;
    ++position_.skipped_in_row;
    if (const std::string bad = non_finite_parameter(state_); !bad.empty()) stop_at_update(bad);
    if (bad_steps_++ < kMostBadSteps)
      words += ' ' + keep_bad_step(run_.bad_steps(), position_.step, step, step.results(), state_,
                                   batch, options_.compile);
    if (position_.skipped_in_row < options_.max_skipped_steps) {
      reporter_.step_skipped(words + " It was skipped.");
      return;
    }
    words +=
        fmt::format(" It is the last of {} in a row that were skipped (train.max_skipped_steps).",
                    position_.skipped_in_row);
    if (position_.restores >= options_.max_restores) stop(words);
    reporter_.step_skipped(words + ' ' + go_back());
  }

  /// To the last checkpoint's State at half the learning rate; the batches go on. A run that ends before its next
  /// checkpoint meets the same steps again when it is resumed. Returns what to say of it.
  std::string go_back() {
    saver_->finish();
    const double factor = state_.read<double>(kRateFactor)[0] / 2;
    const std::optional<RunPosition> from =
        restore_last(job_, run_, store_, state_, frozen_, reporter_.log());
    if (!from) stop("There is no checkpoint to go back to.");
    state_.write<double>(kRateFactor, {factor});
    state_.write<int64_t>("step", {position_.step});
    batches_->seek(static_cast<uint64_t>(position_.step));
    position_.skipped_in_row = 0;
    ++position_.restores;
    return fmt::format(
        "Going on from the weights of step {} with {:g} of the learning rate; restored {} of {} "
        "times (train.max_restores).",
        from->step, factor, position_.restores, options_.max_restores);
  }

  /// Steps have been finite, and yet a parameter is not: the update of one of them overflowed. From the last
  /// checkpoint, whose parameters are finite, the steps are made again until it is met, and up to it once more.
  [[noreturn]] void stop_at_update(const std::string& bad) {
    reporter_.log().info("{} is not finite; looking for the update that made it so", bad);
    saver_->finish();
    const int64_t most = position_.step;
    StepResults results;
    int64_t step = make_again(most, results);
    const bool found = step <= most && !non_finite_parameter(state_).empty();
    std::string words = fmt::format("{} is not finite after step {}.", bad, most);
    if (found && step > 0) {
      StepResults before;
      make_again(step - 1, before);
      const auto [shape, batch] = batches_->next();
      const CompiledStep& compiled = programs_->step(shape);
      state_.write<int64_t>("step",
                            {state_.read<int64_t>("step")[0] + 1});  // as if it had been made
      words = fmt::format("step {} is finite, but its update is not: {}", step,
                          keep_bad_step(run_.bad_steps(), step, compiled, results, state_, batch,
                                        options_.compile));
    }
    stop(words);
  }

  /// From the last checkpoint on, at most up to step `last`, until a parameter is not finite. Returns the step, whose
  /// results are the last.
  int64_t make_again(int64_t last, StepResults& results) {
    const std::optional<RunPosition> from =
        restore_last(job_, run_, store_, state_, frozen_, reporter_.log());
    if (!from) return 0;
    int64_t made = from->step;
    batches_->seek(static_cast<uint64_t>(made));
    while (made < last && non_finite_parameter(state_).empty()) {
      const auto [shape, batch] = batches_->next();
      CompiledStep& step = programs_->step(shape);
      step.run(batch);
      batches_->step_made(step);
      results = step.results();
      ++made;
    }
    return made;
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
    const PhaseClock::Within evaluating(reporter_.phases(), RunPhase::evaluation);
    Evaluator& evaluator = *programs_->evaluator();
    const std::optional<Evaluation> result = evaluator.evaluate([&](uint64_t done) {
      reporter_.evaluating(done, evaluator.batches());
      return !interrupt_->requested();
    });
    if (!result) return;
    if (!std::isfinite(result->loss))
      throw NumericalError(
          fmt::format("the validation loss at step {} is {}", position_.step, result->loss));
    const bool best = position_.evaluated(result->loss, result->score);
    unsaved_ = true;
    reporter_.evaluated(position_, result->metrics, seconds_between(start, Clock::now()));
    if (best) save(true);
  }

  RunRecord record() const {
    RunRecord record = to_record(position_);
    record.seed = options_.seed;
    record.identity = job_.identity;
    record.config = job_.config_json;
    record.tokenizer = job_.tokenizer;
    record.frozen = frozen_;
    return record;
  }

  void save(bool best) {
    const PhaseClock::Within saving(reporter_.phases(),
                                    begun_ ? RunPhase::checkpoint : RunPhase::start);
    // What a run goes on from, and what "the last good state" is, must be finite.
    if (position_.step > 0)
      if (const std::string bad = non_finite_parameter(state_); !bad.empty()) stop_at_update(bad);
    // Metrics of steps that the checkpoint knows of are not lost either. The first one knows of none.
    std::function<Status()> before;
    if (begun_) before = [this] { return reporter_.sync_metrics(); };
    saver_->save(record(), best, std::move(before));
    unsaved_ = false;
  }

  const TrainingJob& job_;
  const TrainingOptions& options_;
  const RunDirectory& run_;
  RunReporter reporter_;
  CheckpointStore store_;
  std::shared_ptr<Device> device_;
  State state_;
  std::vector<TracedStep> traced_;  ///< until they are compiled
  std::vector<std::string> dead_losses_;
  std::map<std::string, FrozenTensor> frozen_;  ///< what is lent to the State, for checkpoints
  std::vector<double> samples_;                 ///< of a step, by shape of batch
  std::optional<RunSaver> saver_;
  std::optional<RunPrograms> programs_;
  std::optional<StepRecorder> recorder_;
  std::optional<StepBatches> batches_;
  std::optional<InterruptGuard> interrupt_;
  std::unique_ptr<Turns> turns_;  ///< null: steps are made as they come
  int bad_steps_ = 0;             ///< since the start or resume
  RunPosition position_;
  bool restored_ = false;
  bool begun_ = false;
  bool stepped_ = false;  ///< since the start or resume
  bool unsaved_ = false;  ///< something happened since the last checkpoint
};

}  // namespace

ExitCode train(const TrainingJob& job, const RunDirectory& run, Console& console, bool resume,
               std::chrono::steady_clock::time_point start) {
  const ClosedPipes closed_pipes;
  return Trainer(job, run, console, start).run(resume);
}

}  // namespace fullbore
