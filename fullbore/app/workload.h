#pragma once
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "fullbore/app/command.h"
#include "fullbore/app/job_options.h"
#include "fullbore/lab/quality/measured_items.h"
#include "fullbore/lab/quality/quality_metric.h"
#include "fullbore/monitor/console.h"
#include "fullbore/train/config_keys.h"
#include "fullbore/train/frozen_weights.h"

namespace fullbore {

class RunDirectory;
class WeightSource;
struct TableOrigins;
struct JudgeArguments;

/// What a new run starts from in place of random weights.
struct InitialWeights {
  std::function<void(State&)> fill;  ///< empty: nothing
  std::vector<std::string> lines;    ///< for the log: what was taken, renamed and left
};

/// A model and its data, as the commands see them: here the trainer, the models and the data meet. A configuration may
/// be changed between the calls, by what memory allows.
struct OpenedWorkload {
  std::function<LossFunction(const Config&)> loss;
  /// Every shape that batches can have.
  std::function<std::vector<std::vector<BatchField>>(const Config&)> shapes;
  std::function<bool(const Config&)> validates;
  /// The whole job. `config` is what the run keeps: with run.dir and absolute paths. UsageError or DataError for
  /// data that do not go with it.
  std::function<TrainingJob(const Config&)> job;
  std::string
      sample;        ///< what a row of a batch is, for rates: "spectra"; empty: rates are of tokens
  std::string unit;  ///< what a batch has in its first two axes: "tokens"
  std::string batches;                              ///< for people: what they are made of
  std::function<std::string(const Config&)> about;  ///< a line for people about the data
  // What fullbore/app/initial_weights.h asks; all may be empty.
  std::vector<std::string> weight_keys = {};  ///< settings that change what weights of a shape mean
  /// Tables of the model whose rows or columns stand for other things in that checkpoint, such as other tokens.
  std::function<std::vector<TableOrigins>(const Config&, const WeightSource&)> weight_tables = {};
  /// Weights of a folder that is neither run nor checkpoint. UsageError or DataError as initial_weights().
  std::function<InitialWeights(const Config&)> foreign_weights = {};
  /// For people: how large a batch is, where it has not the extents of its first field; empty: it always has.
  std::function<std::string(const Config&)> batch_size = {};
  /// Frozen parameters that the job reads where they lie (TrainingJob::frozen), beside those of train.frozen_from.
  std::shared_ptr<const FrozenWeights> frozen = {};
  /// Programs that a run has beside its steps and evaluations; empty: none.
  std::function<std::vector<Graph>(const Config&)> beside = {};
  /// What is shown of a run that is done, on standard output.
  std::function<void(const Config&, const RunDirectory&, Console&)> show = {};
};

/// What stands in for data.
struct StandIn {
  int64_t vocabulary = 0;  ///< so many kinds of random tokens; 0: as the configuration says
  bool allowed = false;    ///< measuring needs no text
};

/// What `eval` was told, whatever it measures.
struct EvalRequest {
  std::string subject;  ///< a run, a checkpoint, or a file that a workload reads
  std::string data;     ///< to measure on, all of it; empty: what the run held out
  int64_t batches = 0;  ///< at most so many; 0: all
  bool json = false;
  std::string against = {};  ///< another subject, which the first is compared with; empty: none
  std::vector<std::string> frozen_from = {};  ///< --frozen-from, of kinds that take it
};

/// How `eval` measures one kind of subject.
struct EvalKind {
  /// Is it a file of this kind's own? Runs and checkpoints are told by their model. May be empty.
  std::function<bool(const std::string& subject)> reads_file = {};
  std::vector<std::string> models = {};  ///< values of model.name that it measures
  bool takes_frozen = false;             ///< EvalRequest::frozen_from
  /// UsageError that names an option of its own, if one was given: another kind is measured.
  std::function<void()> refuse = {};
  std::function<ExitCode(const EvalRequest&)> run = {};
  /// The subject's figures item by item, which `eval A --against B` compares; empty: as evaluations of its run have them,
  /// by batches of what that held out.
  std::function<MeasuredItems(const EvalRequest&)> items = {};
  /// Compares by itself, in place of that, what `compares` says; both or none are set.
  std::function<bool(const EvalRequest&)> compares = {};
  std::function<ExitCode(const EvalRequest&, const JudgeArguments&)> compare = {};
  std::vector<std::string> examples = {};  ///< for --help: "eval runs/mine-1 --data other.csv"
};

/// A system that can be trained, as a folder of workloads/ or a program of one's own brings it: everything that the
/// commands know of it. register_workload() makes it known, or app() does.
struct Workload {
  std::string name;  ///< of its folder
  /// Its keys, and the values of model.name that it brings; keys.name is `name`. Without models it only adds to others.
  ConfigKeys keys = {};
  /// Opens the data: UsageError or DataError where they cannot be had. Of a workload with models.
  std::function<OpenedWorkload(const Config&, Console&, const StandIn&)> open = {};
  /// Its commands, if it has any.
  std::function<void(Command root)> add_commands = {};
  /// Adds its options to `eval`.
  std::function<EvalKind(Command eval)> add_eval = {};
  /// What a run of this configuration is judged by, each with its margin of "no worse"; empty: nobody has said.
  std::function<QualityMetrics(const Config&)> quality = {};
  // What of the engine its models need set otherwise than for all.
  std::function<void(const Config&, CompileOptions&)> set_compile_options = {};
  std::function<void(const Config&, OptimizerOptions&)> set_optimizer_options = {};
  /// Makes paths of its own keys absolute, so that a run can be resumed from elsewhere.
  std::function<void(Config&)> set_absolute_paths = {};
  /// Is called when it is registered: to make its parts known to a room that it builds upon.
  std::function<void()> registers = {};
};

/// Before the first configuration is read.
void register_workload(Workload workload);
/// For a static variable of a source that is linked in whole.
struct WorkloadRegistrar {
  explicit WorkloadRegistrar(Workload workload) { register_workload(std::move(workload)); }
};
/// All that are registered, by name.
const std::vector<Workload>& workloads();
/// Whose model config.model.name is; null if it is nobody's.
const Workload* find_workload(const Config& config);

/// What a run of this configuration is judged by (Workload::quality), checked; empty where nobody has said.
QualityMetrics declared_quality(const Config& config);

/// The workload of model.name, with its data.
OpenedWorkload open_workload(const Config& config, Console& console, const StandIn& synthetic = {});

}  // namespace fullbore
