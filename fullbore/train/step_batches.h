#pragma once
#include <cstdint>
#include <optional>
#include <span>

#include "fullbore/data/loader.h"
#include "fullbore/train/batch_maker.h"
#include "fullbore/train/run_programs.h"

namespace fullbore {

/// The batches of a job's steps: prepared ahead by a loader, or made by the weights of the step (BatchMaker).
class StepBatches {
 public:
  /// The State and the programs of the job, which it shares the arena with, must outlive it.
  StepBatches(const TrainingJob& job, State& state, RunPrograms& programs);

  /// Of the batch that next() gives.
  uint64_t position() const;
  void seek(uint64_t position);
  /// Steps on. As BatchMaker::Batch.
  BatchMaker::Batch next();
  /// The step on it was made.
  void step_made(const CompiledStep& step);
  /// May the run be saved and left here?
  bool resumes_here() const;
  /// Figures of the last batch; none of a loader's.
  StepResults figures() const;

 private:
  BatchMaker* maker_ = nullptr;
  std::optional<Loader> loader_;
  uint64_t position_ = 0;  ///< of a maker
};

/// What the job's maker asks of State; nothing where there is none.
std::vector<StateEntry> made_state_entries(const TrainingJob& job);

}  // namespace fullbore
