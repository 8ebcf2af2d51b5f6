#include "fullbore/train/run_saver.h"

#include <chrono>
#include <utility>

namespace fullbore {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

RunSaver::RunSaver(CheckpointStore& store, const State& state, Team& team, SaveOptions options)
    : store_(store), state_(state), team_(team), options_(options) {
  if (options_.background) snapshot_ = Snapshot(state, options_.compression);
}

void RunSaver::save(const RunRecord& record, bool best, std::function<Status()> before) {
  const auto start = std::chrono::steady_clock::now();
  finish();
  if (options_.background) snapshot_.take(team_);
  auto write = [this, best, before = std::move(before), step = record.step,
                texts = to_texts(record)]() -> Status {
    if (before)
      if (Status status = before(); !status.ok()) return status;
    return store_.save(
        step,
        {options_.background ? snapshot_.groups() : tensor_groups(state_, options_.compression),
         texts},
        best);
  };
  if (options_.background)
    task_.start([this, first = saves_ == 0, write = std::move(write)] {
      Status status = write();
      if (first && status.ok()) snapshot_.meet(wanted_);
      return status;
    });
  else
    write().take_or_throw();
  ++saves_;
  stall_seconds_ += seconds_since(start);
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
