#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fullbore/base/tensor_memory.h"
#include "fullbore/data/loader.h"
#include "fullbore/runtime/program.h"
#include "fullbore/train/step_function.h"
#include "fullbore/train/step_outputs.h"

namespace fullbore {

/// Held-out batches 0 .. batches-1 of a source.
struct ValidationSet {
  std::shared_ptr<const BatchSource> source;
  uint64_t batches = 0;
  std::string judge =
      {};  ///< the metric, the higher the better, that tells the best; empty: the loss
};

struct Evaluation {
  double loss = 0;           ///< mean per prediction over the whole set
  double predictions = 0;    ///< of all batches; of a loss that does not tell them, the batches
  StepResults metrics = {};  ///< means over the whole set, in the loss's order
  double score = 0;          ///< what the best has least of: the loss, or the judge's opposite
};

/// One batch of an evaluation, for comparisons on the very same.
struct EvaluatedBatch {
  uint64_t hash = 0;  ///< of the bytes of all its fields
  double loss = 0;
  double predictions = 0;  ///< Evaluation::predictions, of this batch
  std::vector<double> metrics = {},
                      weights = {};  ///< in the loss's order; of how many each is the mean
};

/// The evaluation for every shape of the set's batches, to which sequences are given (with_recurrent_states_given()).
std::vector<TracedStep> trace_evaluations(const LossFunction& loss, const ValidationSet& set,
                                          Weights weights);

struct PreparedEvaluations {
  std::vector<std::string> metrics;       ///< TracedStep::metrics
  std::vector<PreparedProgram> programs;  ///< of trace_evaluations()
};

/// Compiled programs, one per shape of batch, that measure the loss of State on held-out batches.
class Evaluator {
 public:
  /// The State must hold what the loss asks for, and outlive it.
  Evaluator(const LossFunction& loss, const ValidationSet& set, State& state,
            const CompileOptions& options, Weights weights = Weights::raw);
  /// Of what others have prepared, with programs in one arena.
  Evaluator(ValidationSet set, PreparedEvaluations prepared, State& state,
            const std::shared_ptr<Arena>& arena);

  std::vector<const Plan*> plans() const;
  uint64_t batches() const { return set_.batches; }
  const std::vector<std::string>& metrics() const { return metrics_; }  ///< in the loss's order

  /// Over the whole set, sequences beginning with zeros; those of the State are left alone. `go_on` is asked
  /// before each batch with the number done so far; when it says no, the result is none. `each`, if set, gets every batch.
  std::optional<Evaluation> evaluate(const std::function<bool(uint64_t done)>& go_on,
                                     const std::function<void(const EvaluatedBatch&)>& each = {});

 private:
  ValidationSet set_;
  /// What sequences remember on their way through the set: a buffer for each of the programs' inputs behind
  /// those of the source, and the result that it is filled from after each batch, -1 where there is none.
  struct Sequences {
    std::vector<TensorMemory> memory;
    std::vector<int64_t> bytes;
    std::vector<std::vector<int>> results;  ///< by program
  };
  void add_sequences(const Program& program);
  void run(uint64_t position, std::span<const void* const> batch);
  uint64_t hash_of(uint64_t position, std::span<const void* const> batch) const;

  std::vector<Program> programs_;
  Sequences sequences_;
  std::vector<std::string> metrics_;
  Loader loader_;
};

}  // namespace fullbore
