#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "fullbore/data/loader.h"
#include "fullbore/runtime/program.h"
#include "fullbore/train/step_function.h"

namespace fullbore {

/// Held-out batches 0 .. batches-1 of a source.
struct ValidationSet {
  std::shared_ptr<const BatchSource> source;
  uint64_t batches = 0;
};

struct Evaluation {
  double loss = 0;         ///< mean per prediction over the whole set
  double predictions = 0;  ///< of all batches; of a loss that does not tell them, the batches
};

/// Compiled programs, one per shape of batch, that measure the loss of State on held-out batches.
class Evaluator {
 public:
  /// The State, which must hold what the loss asks for, and the Team must outlive it. `arena`: to be
  /// shared with other programs.
  Evaluator(const LossFunction& loss, ValidationSet set, State& state, Team& team,
            const CompileOptions& options, Weights weights = Weights::raw,
            std::shared_ptr<Arena> arena = nullptr);

  std::vector<const Plan*> plans() const;
  uint64_t batches() const { return set_.batches; }

  /// Over the whole set. `go_on` is asked before each batch with the number done so far; when it says
  /// no, the result is none.
  std::optional<Evaluation> evaluate(const std::function<bool(uint64_t done)>& go_on);

 private:
  ValidationSet set_;
  std::vector<Program> programs_;
  Loader loader_;
};

}  // namespace fullbore
