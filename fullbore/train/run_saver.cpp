#include "fullbore/train/run_saver.h"

#include <chrono>
#include <utility>

#include "fullbore/base/check.h"

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

void RunSaver::start(Write write) {
  task_.start([this, first = saves_ == 0, write = std::move(write)] {
    Status status = write();
    if (first && status.ok()) snapshot_.meet(wanted_);
    return status;
  });
}

void RunSaver::save(const RunRecord& record, bool best, std::function<Status()> before) {
  const auto begin = std::chrono::steady_clock::now();
  finish();
  if (options_.background) snapshot_.take();
  Write write = writing(record, best, std::move(before));
  if (options_.background)
    start(std::move(write));
  else
    write().take_or_throw();
  ++saves_;
  stall_seconds_ += seconds_since(begin);
}

void RunSaver::save_initial(const RunRecord& record, Snapshot::Draw draw) {
  FB_CHECK(saves_ == 0, "a State that begins after {} saves", saves_);
  if (!options_.background) {
    save(record, false, {});
    return;
  }
  const auto begin = std::chrono::steady_clock::now();
  start([this, draw = std::move(draw), write = writing(record, false, {})] {
    snapshot_.fill(draw);
    return write();
  });
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
}

}  // namespace fullbore
