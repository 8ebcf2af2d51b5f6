#pragma once
#include <functional>
#include <string>
#include <vector>

#include "apps/job_options.h"
#include "fullbore/monitor/console.h"

namespace fullbore {

class WeightSource;
struct TableOrigins;

/// What a new run starts from in place of random weights.
struct InitialWeights {
  std::function<void(State&)> fill;  ///< empty: nothing
  std::vector<std::string> lines;    ///< for the log: what was taken, renamed and left
};

/// A kind of model and its data, as the commands see them: here the trainer, the models and the data meet. A
/// configuration may be changed between the calls, by what memory allows.
struct Workload {
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
  // What apps/initial_weights.h asks; all may be empty.
  std::vector<std::string> weight_keys = {};  ///< settings that change what weights of a shape mean
  /// Tables of the model whose rows or columns stand for other things in that checkpoint, such as other tokens.
  std::function<std::vector<TableOrigins>(const Config&, const WeightSource&)> weight_tables = {};
  /// Weights of a folder that is neither run nor checkpoint. UsageError or DataError as initial_weights().
  std::function<InitialWeights(const Config&)> foreign_weights = {};
};

/// What stands in for data.
struct StandIn {
  int64_t vocabulary = 0;  ///< so many kinds of random tokens; 0: as the configuration says
  bool allowed = false;    ///< measuring needs no text
};

/// The workload of model.name. Opens the data: UsageError or DataError where they cannot be had.
Workload open_workload(const Config& config, Console& console, const StandIn& stand_in = {});

// One for each kind of model.
Workload language_workload(const Config& config, Console& console, const StandIn& stand_in);
Workload peptide_workload(const Config& config, Console& console);

}  // namespace fullbore
