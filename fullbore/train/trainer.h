#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fullbore/base/error.h"
#include "fullbore/monitor/metric_sink_options.h"
#include "fullbore/monitor/run_summary.h"
#include "fullbore/monitor/sensor_options.h"
#include "fullbore/train/evaluator.h"
#include "fullbore/train/run_checkpoints.h"
#include "fullbore/train/run_directory.h"
#include "fullbore/train/run_saver.h"
#include "fullbore/train/step_outputs.h"

namespace fullbore {

class Console;
class BatchMaker;
class FrozenWeights;
class PlannedPrograms;
class RunObserver;

struct TrainingOptions {
  int64_t steps = 1000;
  int64_t log_interval = 10;          ///< steps between lines of metrics
  int64_t evaluation_interval = 100;  ///< steps between evaluations; 0: at the end only
  int64_t checkpoint_interval = 100;  ///< steps between checkpoints; 0: at the end only
  int64_t patience = 0;               ///< evaluations without a best one to stop after; 0: never
  int64_t max_skipped_steps = 10;     ///< in a row, to stop after
  int64_t max_restores = 0;           ///< instead; the optimizer is `adjustable` then
  SaveOptions saves = {};
  MetricsLevel metrics = MetricsLevel::all;
  Detail detail = Detail::info;
  MetricSinkOptions sinks = {};
  SensorLogOptions sensors = {};
  uint64_t seed = 1;  ///< of initial values and of random ops
  OptimizerOptions optimizer = {};
  Microbatches parts = {};
  Weights evaluate = Weights::raw;  ///< whose validation loss decides what is best
  CompileOptions compile = {};
  LoaderOptions loader = {};
  std::string resume_command = {};  ///< for people: what goes on with the run after a signal
  std::string device = "cpu";       ///< by name, of open_device()
  int workers = 0;                  ///< threads of the step; 0: all processors there are
  bool moments_in_host = false;     ///< open_device() is asked so
};

/// Everything a training run is made of. The trainer knows the model as a function that writes a
/// loss into a trace, and the data as a source of batches: nothing of tokens or of architectures.
struct TrainingJob {
  LossFunction loss;
  /// Fills parameters before the first step, in place of their random values; may be empty. Throws
  /// DataError.
  std::function<void(State& state)> initialize;
  /// What initialize() takes and what it leaves, for the log: a line each.
  std::vector<std::string> initialized;
  /// Frozen parameters that lie in files; may be null.
  std::shared_ptr<const FrozenWeights> frozen = {};
  std::shared_ptr<const BatchSource> training;  ///< batch p belongs to step p
  /// Makes them by the weights of the step; null: they are loaded ahead. `training` is the same object where there is one.
  std::shared_ptr<BatchMaker> maker = {};
  std::optional<ValidationSet> validation;
  int64_t tokens_per_step =
      0;                     ///< at most; for rates, where the loss does not tell its predictions
  StepFigures figures = {};  ///< for the lines about steps
  /// What a row of a batch is, for rates: "spectra". Empty: rates are of tokens.
  std::string sample_unit = {};
  int64_t samples_per_row = 1;          ///< where a row has several of them
  std::vector<ShownMetric> shown = {};  ///< metrics of the loss that log lines tell
  TrainingOptions options;
  /// Called when the first step is made, with where the time went since `start`; may be empty.
  std::function<void(const std::vector<StartPart>& parts)> started = {};
  std::shared_ptr<RunObserver> observer = {};  ///< train/run_observer.h; may be null
  /// Programs of the run that were planned to see what it takes: those are not planned again. May be null.
  std::shared_ptr<PlannedPrograms> planned = {};
  /// Kept in checkpoints; a run is resumed with the same tokenizer, identity and seed only.
  std::string tokenizer;
  RunIdentity identity;
  std::string config;       ///< the resolved configuration, YAML, kept in the run
  std::string config_json;  ///< the same as JSON, kept in checkpoints
  /// The configuration before memory changed it, YAML, kept in the run too; empty if it did not.
  std::string given_config;
};

/// Runs the job in the run directory, from its last checkpoint if `resume` is set and there is one.
///
/// A run is saved before its first step, every `checkpoint_interval` steps, at every best validation
/// loss, and at the end: ckpt/checkpoint_store.h. A resumed run has the bits of one never
/// interrupted. On SIGINT, SIGTERM, SIGHUP or SIGUSR1 the step is finished, the run saved, and
/// kInterrupted returned.
/// A step that is not finite is skipped: the State stays as it was, the run goes on with the next
/// batch, and the first such steps are kept in bad_steps/. Throws NumericalError after
/// `max_skipped_steps` of them in a row; the first `max_restores` times the State is that of the last checkpoint again,
/// with half the learning rate (State kRateFactor), and the next batch's step follows. Or at once where the step's graph has no result `skipped`
/// and so has updated the State, or where the update of a finite step was not: the steps since the last
/// checkpoint are made again to name the one, and nothing that is not finite is saved; DataError when the checkpoint belongs to another run or a file
/// cannot be written. Whatever happens, summary.json says how it ended.
ExitCode train(const TrainingJob& job, const RunDirectory& run, Console& console, bool resume,
               std::chrono::steady_clock::time_point start);

}  // namespace fullbore
