#include "fullbore/train/run_saver.h"

#include <chrono>
#include <utility>

namespace fullbore {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

RunSaver::RunSaver(CheckpointStore& store, const State& state, SaveOptions options)
    : store_(store), state_(state), options_(options) {
  if (options_.background) snapshot_ = Snapshot(state, options_.compression);
}

RunSaver::Write RunSaver::writing(const RunRecord& record, bool best,
                                  std::function<Status()> before) {
  return [this, best, before = std::move(before), step = record.step,
          texts = to_texts(record)]() -> Status {
    if (before)
      if (Status status = before(); !status.ok()) return status;
    return store_.save(
        step,
        {options_.background ? snapshot_.groups() : tensor_groups(state_, options_.compression),
         texts},
        best);
  };
}

void RunSaver::in_background(Write write) {
  {
    const std::lock_guard lock(mutex_);
    if (takes_more_) {
      queue_.push_back(std::move(write));
      return;
    }
  }
  finish();  // the task has looked into the queue for the last time
  queue_.push_back(std::move(write));
  takes_more_ = true;
  task_.start([this] { return write_queue(); });
}

Status RunSaver::write_queue() {
  const auto give_up = [this] {
    const std::lock_guard lock(mutex_);
    queue_.clear();
    takes_more_ = false;
  };
  try {
    while (const Write write = next_write())
      if (Status status = write(); !status.ok()) {
        give_up();
        return status;
      }
  } catch (...) {
    give_up();
    throw;
  }
  return success();
}

/// None when there is nothing left to write.
RunSaver::Write RunSaver::next_write() {
  const std::lock_guard lock(mutex_);
  if (queue_.empty()) {
    takes_more_ = false;
    return {};
  }
  Write write = std::move(queue_.front());
  queue_.pop_front();
  return write;
}

void RunSaver::save(const RunRecord& record, bool best, std::function<Status()> before) {
  const auto begin = std::chrono::steady_clock::now();
  Write write = writing(record, best, std::move(before));
  if (!options_.background) {
    write().take_or_throw();
  } else {
    if (!snapshot_.is_current()) {
      finish();
      snapshot_.take();
    }
    in_background(std::move(write));
  }
  ++saves_;
  stall_seconds_ += seconds_since(begin);
}

void RunSaver::finish() {
  wanted_ = true;
  task_.wait().take_or_throw();
  wanted_ = false;
}

void RunSaver::check() {
  if (task_.pending() && !task_.running()) finish();
  // Not beside the first step, which shall be made soon: once the State has changed.
  if (task_.pending() || meets_ || saves_ == 0 || !options_.background || snapshot_.is_current())
    return;
  meets_ = true;
  task_.start([this] {
    snapshot_.meet(wanted_);
    return success();
  });
}

}  // namespace fullbore
