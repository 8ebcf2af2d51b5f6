#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fullbore/ckpt/checkpoint_folder.h"
#include "fullbore/ckpt/run_record.h"

namespace fullbore {

/// Which checkpoints stay.
struct Retention {
  int64_t newest;  ///< how many of the newest, at least 1; 0: all
  int64_t best;    ///< how many of those that were the best when they were saved, at least 1
  Retention(int64_t newest_, int64_t best_ = 1)  // NOLINT(google-explicit-constructor): "keep 2"
      : newest(newest_), best(best_) {}
};

/// The folder `checkpoints` of a run:
///   step-00000250, step-00000500, ...   the checkpoints; once there, one never changes
///   last, best                          symbolic links to two of them
///   best-2, best-3, ...                 the best before it, as many as are kept
///   .*.tmp                              what is being written or removed
///
/// A checkpoint is written under a temporary name, synced, and renamed to a name that was free, which
/// no file system can do by half; only then is a link made to say it, by a rename over the old link;
/// only then do older ones go, renamed first, so that nobody takes what is half removed for a torn
/// checkpoint. Names are synced between these. So whatever the moment of a crash or a power cut,
/// every checkpoint that save() has ever reported, unless retention removed it since, is there and
/// whole, and both links lead somewhere. (Exchanging two folders by renameat2 would need a fallback
/// where file systems lack it; a free name needs none.)
class CheckpointStore {
 public:
  CheckpointStore(std::string folder, Retention retention, FileSystem& files = system_files());

  /// Removes what a crash left half written or half removed. One process at a time: the caller's
  /// lock on the run sees to it.
  void remove_stale();

  /// Saves, points `last` (and `best`, the former one then being `best-2`) to it, removes what is no longer kept.
  /// Failure: the checkpoints that were there are still there.
  Status save(int64_t step, const CheckpointContents& contents, bool best);

  /// Points `last` (and `best`) to a checkpoint of this store that a run goes on from: a crash between
  /// naming it and pointing there leaves the links behind. Nothing is written where they lead there.
  Status adopt(const std::string& path, bool best);

  /// Paths, newest first: by step, and among those of one step by age. Failure: nobody knows.
  Result<std::vector<std::string>> list() const;

 private:
  std::string free_name(int64_t step) const;
  std::string target(const std::string& link) const;
  Status point(const std::string& link, const std::string& name);
  Status point_best(const std::string& name);
  void retain();
  void discard(const std::string& name);

  std::string folder_;
  Retention retention_;
  FileSystem* files_;
};

struct LatestCheckpoint {
  struct Found {
    CheckpointFolder checkpoint;
    RunRecord record;
  };
  std::optional<Found> found;         ///< none: no checkpoint is in order
  std::vector<std::string> rejected;  ///< why newer ones were passed over, one sentence each
};

/// The newest checkpoint of a store that is wholly in order. Only those tried are read whole.
/// Failure: the folder cannot be read, which is not the same as an empty one.
Result<LatestCheckpoint> find_latest(const CheckpointStore& store,
                                     FileSystem& files = system_files());

}  // namespace fullbore
