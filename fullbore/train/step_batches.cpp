#include "fullbore/train/step_batches.h"

#include "fullbore/base/check.h"
#include "fullbore/base/error.h"

namespace fullbore {

void BatchMaker::fill(uint64_t position, std::span<void* const> /*buffers*/) const {
  FB_CHECK(false, "batch {} is made by the weights of its step", position);
}

std::vector<StateEntry> made_state_entries(const TrainingJob& job) {
  if (!job.maker) return {};
  // A maker traces programs of its own over the weights, in f32.
  if (!job.options.optimizer.storage.master_weights)
    throw UsageError(
        "engine.master_weights=false is not for batches that the weights themselves make");
  return job.maker->state_entries();
}

StepBatches::StepBatches(const TrainingJob& job, State& state, RunPrograms& programs)
    : maker_(job.maker.get()) {
  if (maker_ == nullptr) {
    loader_.emplace(job.training, job.options.loader);
    return;
  }
  maker_->prepare(state, job.options.compile, programs.shared_arena());
  programs.add_plans(maker_->plans());
}

uint64_t StepBatches::position() const { return loader_ ? loader_->position() : position_; }

void StepBatches::seek(uint64_t position) {
  if (loader_)
    loader_->seek(position);
  else
    position_ = position;
}

BatchMaker::Batch StepBatches::next() {
  if (loader_) {
    const size_t shape = loader_->source().shape_at(loader_->position());
    return {shape, loader_->next()};
  }
  const BatchMaker::Batch batch = maker_->make(position_);
  ++position_;
  return batch;
}

void StepBatches::step_made(const CompiledStep& step) {
  if (maker_ != nullptr) maker_->step_made(position_ - 1, step.results());
}

bool StepBatches::resumes_here() const {
  return maker_ == nullptr || maker_->resumes_at(position_);
}

StepResults StepBatches::figures() const {
  return maker_ == nullptr ? StepResults{} : maker_->figures();
}

}  // namespace fullbore
