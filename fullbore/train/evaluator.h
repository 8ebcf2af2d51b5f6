#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "fullbore/data/loader.h"
#include "fullbore/runtime/program.h"
#include "fullbore/train/step_function.h"

namespace fullbore {

/// Held-out batches 0 .. batches-1 of a source. A step's loss is the mean over `rows` rows of a
/// batch, of which `predictions(position)` count; the others (padding) add zero.
struct ValidationSet {
  std::shared_ptr<const BatchSource> source;
  uint64_t batches = 0;
  int64_t rows = 1;
  std::function<int64_t(uint64_t position)> predictions;
};

/// A compiled program that measures the loss of State on held-out batches.
class Evaluator {
 public:
  /// The State, which must hold what the loss asks for, and the Team must outlive it.
  Evaluator(const LossFunction& loss, ValidationSet set, State& state, Team& team,
            const CompileOptions& options, Weights weights = Weights::raw);

  const Plan& plan() const { return program_.plan(); }
  uint64_t batches() const { return set_.batches; }

  /// Mean loss per prediction over the whole set. `go_on` is asked before each batch with the
  /// number done so far; when it says no, the result is none.
  std::optional<double> evaluate(const std::function<bool(uint64_t done)>& go_on);

 private:
  ValidationSet set_;
  Program program_;
  Loader loader_;
  int loss_output_;
};

}  // namespace fullbore
