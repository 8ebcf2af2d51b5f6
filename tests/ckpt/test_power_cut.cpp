// The power goes at every write, fsync and rename of a run's life: appending metrics, saving, moving
// the links, rotating old checkpoints out, starting again.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "fullbore/base/files.h"
#include "fullbore/base/philox.h"
#include "fullbore/base/seal.h"
#include "fullbore/ckpt/checkpoint_store.h"
#include "fullbore/monitor/json_lines.h"
#include "tests/ckpt/checkpoint_fixture.h"
#include "tests/support/memory_disk.h"

namespace fullbore {
namespace {

using testing::Contents;
using testing::MemoryDisk;

constexpr int64_t kSteps = 7;
constexpr int kLots = 32;
constexpr int kLines = 3;
constexpr const char* kMetrics = "run/metrics.jsonl";

/// A disk on which something that must be done is not.
class Careless : public MemoryDisk {
 public:
  enum class Omission { kFileSync, kFolderSync };
  explicit Careless(Omission omission) : omission_(omission) {}
  int sync(int file) override {
    return omission_ == Omission::kFileSync ? 0 : MemoryDisk::sync(file);
  }
  int sync_folder(const std::string& path) override {
    return omission_ == Omission::kFolderSync ? 0 : MemoryDisk::sync_folder(path);
  }

 private:
  Omission omission_;
};

/// What was promised to last.
struct Promises {
  int64_t step = -1;  ///< of the newest checkpoint that was reported as saved
  int64_t best = -1;
};

bool is_best(int64_t step) { return step % 3 == 1; }

/// Lives until the power goes or all is done.
Promises live(MemoryDisk& disk, int64_t first, int64_t last) {
  Promises promises;
  CheckpointStore store("run/checkpoints", 2, disk);
  Result<JsonLines> metrics = JsonLines::open(kMetrics, disk);
  for (int64_t step = first; metrics.ok() && step <= last; ++step) {
    for (int line = 0; line < kLines; ++line)
      if (!metrics.value().write({{"step", step}, {"line", line}}).ok()) return promises;
    if (!metrics.value().sync().ok()) break;
    if (!store.save(step, Contents(step).get(), is_best(step)).ok()) break;
    promises.step = step;
    if (is_best(step)) promises.best = step;
  }
  return promises;
}

int64_t linked_step(MemoryDisk& disk, const char* link) {
  const auto folder = open_checkpoint_folder(std::string("run/checkpoints/") + link, disk);
  if (!folder.ok() || !folder.value().verify().ok()) return -1;
  const Result<RunRecord> record = read_run_record(folder.value());
  return record.ok() ? record.value().step : -1;
}

/// What a start does before anything else; returns the newest checkpoint.
Result<LatestCheckpoint> start_again(MemoryDisk& disk) {
  CheckpointStore store("run/checkpoints", 2, disk);
  store.remove_stale();
  Result<LatestCheckpoint> latest = find_latest(store, disk);
  if (!latest.ok()) return latest;
  const int64_t step = latest.value().found ? latest.value().found->record.step : 0;
  const auto kept = [&](const nlohmann::ordered_json& line) {
    return line.value("step", step + 1) <= step;
  };
  const Result<TrimmedLines> dropped = trim_json_lines(kMetrics, kept, disk);
  if (!dropped.ok()) return Failure{dropped.error()};
  return latest;
}

/// Every line of every step up to this one.
std::string lines_until(int64_t step) {
  std::string text;
  uint64_t number = 0;
  for (int64_t i = 1; i <= step; ++i)
    for (int line = 0; line < kLines; ++line)
      text += seal_json(fmt::format("{{\"step\":{},\"line\":{}}}", i, line), ++number) + '\n';
  return text;
}

/// "" or what was lost.
std::string loss(MemoryDisk disk, const Promises& promises) {
  const Result<LatestCheckpoint> latest = start_again(disk);
  if (!latest.ok()) return latest.error();
  const auto& found = latest.value().found;
  const Result<std::string> metrics = read_file(kMetrics, disk);
  if (found && (!metrics.ok() || metrics.value() != lines_until(found->record.step)))
    return "metrics are missing";
  if (promises.step >= 0) {
    if (!found) return fmt::format("step {} is gone", promises.step);
    if (found->record.step < promises.step)
      return fmt::format("step {} instead of {}", found->record.step, promises.step);
    if (linked_step(disk, "last") < promises.step) return "last leads nowhere";
  }
  if (found && !Contents(found->record.step).is_in(found->checkpoint)) return "other contents";
  if (promises.best >= 0 && linked_step(disk, "best") < promises.best) return "best leads nowhere";
  // And life goes on.
  const int64_t next = found ? found->record.step + 1 : 1;
  if (live(disk, next, next).step != next) return "it cannot be saved again";
  return linked_step(disk, "last") == next ? "" : "the next one is not found";
}

template <class Disk>
void begin(Disk& disk) {
  disk.make_folder("run");
  disk.make_folder("run/checkpoints");
  disk.MemoryDisk::sync_folder("run");
  disk.MemoryDisk::sync_folder(".");
}

TEST(PowerCut, NoCheckpointIsEverLost) {
  int cuts = 0;
  for (int operation = 0;; ++operation) {
    MemoryDisk disk;
    begin(disk);
    const int before = disk.operations();
    disk.stop_at(before + operation);
    const Promises promises = live(disk, 1, kSteps);
    for (const MemoryDisk::Cut cut : MemoryDisk::kCuts) {
      const bool lots = cut == MemoryDisk::Cut::kDrawsLots;
      for (uint64_t seed = 0; seed < (lots ? kLots : 1); ++seed, ++cuts)
        ASSERT_EQ(loss(disk.after(cut, seed), promises), "")
            << "operation " << operation << ", cut " << static_cast<int>(cut) << ", seed " << seed;
    }
    if (!disk.stopped()) break;
  }
  EXPECT_GE(cuts, 10'000);
  RecordProperty("cuts", cuts);
}

// The power goes again while the run that was cut starts anew.
TEST(PowerCut, NorInAChainOfThem) {
  PhiloxStream lots(4);
  for (int chain = 0; chain < 300; ++chain) {
    MemoryDisk disk;
    begin(disk);
    Promises promises;
    int64_t next = 1;
    for (int cut = 0; cut < 5; ++cut) {
      disk.stop_at(disk.operations() + static_cast<int>(lots.below(250)));
      (void)start_again(disk).ok();
      const Promises made = live(disk, next, next + 5);
      promises.step = std::max(promises.step, made.step);
      promises.best = std::max(promises.best, made.best);
      disk = disk.after(MemoryDisk::Cut::kDrawsLots, lots.below(1000));
      ASSERT_EQ(loss(disk, promises), "") << "chain " << chain << ", cut " << cut;
      const LatestCheckpoint latest = start_again(disk).take_or_throw();
      next = latest.found ? latest.found->record.step + 1 : 1;
    }
  }
}

// The test above must see what it looks for.
TEST(PowerCut, TheTestRejectsCarelessDisks) {
  for (const auto omission : {Careless::Omission::kFileSync, Careless::Omission::kFolderSync}) {
    int losses = 0;
    for (int operation = 0; operation < 250; ++operation) {
      Careless disk(omission);
      begin(disk);
      disk.stop_at(disk.operations() + operation);
      const Promises promises = live(disk, 1, kSteps);
      for (uint64_t seed = 0; seed < 4; ++seed)
        losses += !loss(disk.after(MemoryDisk::Cut::kDrawsLots, seed), promises).empty();
    }
    EXPECT_GT(losses, 0);
  }
}

}  // namespace
}  // namespace fullbore
