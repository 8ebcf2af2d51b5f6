#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fullbore/data/batch_source.h"
#include "fullbore/runtime/arena.h"
#include "fullbore/runtime/program.h"
#include "fullbore/runtime/state.h"
#include "fullbore/train/step_outputs.h"

namespace fullbore {

/// Batches that are made with the step's own weights, as a policy's completions are: a function of the seed, the step and
/// the State before it, and of nothing else, so that a resumed run makes them again to the bit. As a source it tells
/// their fields and shapes; they cannot be prepared ahead.
class BatchMaker : public BatchSource {
 public:
  /// What it needs of State beside what the step asks for: caches, frozen copies, figures of its own. Zero at first.
  virtual std::vector<StateEntry> state_entries() const = 0;
  /// Fills those of a new run, whose parameters are there.
  virtual void begin(State& state) const = 0;
  /// Compiles what makes batches, in the arena that the step works in too. The State is the run's and outlives it.
  virtual void prepare(State& state, const CompileOptions& options,
                       std::shared_ptr<Arena> arena) = 0;

  struct Batch {
    size_t shape = 0;                          ///< of shapes()
    std::span<const void* const> fields = {};  ///< 64-byte aligned, valid until the next call
  };
  /// The batch of step `position` (from 0). A batch serves several steps where resumes_at() says so: those after the
  /// first are asked for in order.
  virtual Batch make(uint64_t position) = 0;
  /// That step was made, with these results: what follows from them goes into State.
  virtual void step_made(uint64_t position, const StepResults& results) = 0;
  /// May the run be saved and left before step `position`? Not where the batch is one made earlier.
  virtual bool resumes_at(uint64_t position) const = 0;
  /// Figures of the last batch, for the lines and files of metrics.
  virtual StepResults figures() const = 0;
  /// What people are to be told since the last call, a warning each.
  virtual std::vector<std::string> take_notices() { return {}; }
  /// What is to be said of all batches as the run ends, a line each.
  virtual std::vector<std::string> last_words() const { return {}; }
  /// Of all its programs, for the plan.
  virtual std::vector<const Plan*> plans() const = 0;

  /// Nobody can fill batches ahead of the weights that make them.
  void fill(uint64_t position, std::span<void* const> buffers) const final;
};

}  // namespace fullbore
