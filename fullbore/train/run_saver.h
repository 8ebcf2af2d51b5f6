#pragma once
#include <atomic>
#include <deque>
#include <functional>
#include <mutex>

#include "fullbore/ckpt/background_task.h"
#include "fullbore/ckpt/checkpoint_store.h"
#include "fullbore/runtime/state.h"
#include "fullbore/train/snapshot.h"

namespace fullbore {

struct SaveOptions {
  Retention retention = 2;
  Compression compression = Compression::none;
  bool background = true;  ///< writes from a snapshot while training goes on
};

/// Saves a run's State. In the background: State is copied to a snapshot, and a thread of low priority
/// writes that. The loop is held up by the copy and, where saves come faster than the disk takes them,
/// by the wait for the one before. A State that is as it was at the last save, as after the evaluation
/// before the first step, is neither copied nor waited for.
class RunSaver {
 public:
  RunSaver(CheckpointStore& store, const State& state, SaveOptions options);
  ~RunSaver() { wanted_ = true; }

  /// Saves the State as it is now. `before` is called first, on the writing thread: what must be on
  /// the disk when the checkpoint is. Throws DataError if this or an earlier save failed.
  void save(const RunRecord& record, bool best, std::function<Status()> before);
  /// Returns when everything is on the disk; throws what save() does.
  void finish();
  /// To be called now and then: throws if a save that has ended failed, better now than at the next one, and sees to
  /// it that the second copy finds its memory.
  void check();

  int64_t saves() const { return saves_; }
  double stall_seconds() const { return stall_seconds_; }  ///< of the loop, all saves together

 private:
  using Write = std::function<Status()>;
  Write writing(const RunRecord& record, bool best, std::function<Status()> before);
  void in_background(Write write);
  Status write_queue();
  Write next_write();

  CheckpointStore& store_;
  const State& state_;
  SaveOptions options_;
  Snapshot snapshot_;
  bool meets_ = false;  ///< the snapshot's pages, or has done so
  std::atomic<bool> wanted_{
      false};                ///< somebody waits for the task: it shall do no more than it must
  std::mutex mutex_;         ///< of the two below
  std::deque<Write> queue_;  ///< of the same snapshot, the next one first
  bool takes_more_ = false;  ///< the task will look into the queue again
  BackgroundTask task_;
  int64_t saves_ = 0;
  double stall_seconds_ = 0;
};

}  // namespace fullbore
