// Moments in the host's memory, replay by replay: whatever reads a place, copies included, finds there what was put there for it,
// and each replay begins with what the one before has left, though copies of that go on as long as they may.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "fullbore/plan/plan.h"
#include "tests/plan/host_state_steps.h"

namespace fullbore {
namespace {

using testing_support::kMomentBytes;
using testing_support::planned;
using testing_support::step_of;
using testing_support::updates_of;

/// Goes through a plan without loops as a device does, but notes who has written instead of what. All State in the host's
/// memory is updated.
class Replays {
 public:
  explicit Replays(const Plan& plan)
      : plan_(plan), cells_(static_cast<size_t>(plan.arena_bytes / plan.alignment)) {}

  void run(int replays) {
    for (replay_ = 1; replay_ <= replays; ++replay_) {
      for (size_t i = 0; i < plan_.launches.size(); ++i) {
        // No earlier than they have to.
        if (i == plan_.first_waiting && replay_ > 1) copies_behind(replay_ - 1);
        if (!plan_.launches[i].behind) launch(plan_.launches[i], replay_);
      }
    }
  }

 private:
  /// Of the smallest piece that has a place of its own.
  struct Cell {
    int buffer = -1;
    int version = 0;  ///< the replay that has made it
  };
  const Buffer& buffer(int index) const { return plan_.buffers[static_cast<size_t>(index)]; }
  bool is_staged(int index) const { return buffer(index).what.starts_with("staged"); }

  void copies_behind(int replay) {
    for (const PlannedLaunch& each : plan_.launches)
      if (each.behind) launch(each, replay);
  }

  void launch(const PlannedLaunch& launch, int replay) {
    const HostEnd end = host_end(plan_, launch);
    const size_t inputs =
        launch.node < 0 ? 1 : plan_.graph.nodes()[static_cast<size_t>(launch.node)].inputs.size();
    for (size_t i = 0; i < inputs; ++i) {
      const int read = launch.buffers[i];
      // The moment of the replay before is there until it is replaced.
      const int oldest = replay - (is_staged(read) && end != HostEnd::to ? 1 : 0);
      if (end == HostEnd::from) {
        EXPECT_EQ(host_[read], replay - 1) << buffer(read).what << " of replay " << replay;
      }
      for (const size_t cell : cells_of(read)) {
        ASSERT_EQ(cells_[cell].buffer, read)
            << buffer(read).what << " is gone in replay " << replay << ", there is "
            << (cells_[cell].buffer < 0 ? "nothing" : buffer(cells_[cell].buffer).what);
        ASSERT_GE(cells_[cell].version, oldest) << buffer(read).what << " of replay " << replay;
      }
    }
    for (size_t i = inputs; i < launch.buffers.size(); ++i) {
      const int written = launch.buffers[i];
      if (buffer(written).in_host) host_[written] = replay;
      for (const size_t cell : cells_of(written))
        cells_[cell] = {written, end == HostEnd::from ? replay - 1 : replay};
    }
  }

  std::vector<size_t> cells_of(int index) const {
    std::vector<size_t> cells;
    const Buffer& place = buffer(index);
    if (place.space == Space::arena)
      for (int64_t at = 0; at < place.bytes; at += plan_.alignment)
        cells.push_back(static_cast<size_t>((place.offset + at) / plan_.alignment));
    return cells;
  }

  const Plan& plan_;
  std::vector<Cell> cells_;
  std::map<int, int> host_;  ///< State there -> the replay that has written it
  int replay_ = 0;
};

TEST(HostStateReplays, FindWhatWasPutThereForThem) {
  for (const bool late_reuse : {false, true})
    for (const int layers : {1, 2, 3, 6, 16, 24})
      for (const int64_t rows : {1, 2, 8}) {
        SCOPED_TRACE(fmt::format("{} layers, {} rows, {}", layers, rows, late_reuse));
        const Plan plan = planned(step_of(layers, rows), true, late_reuse);
        Replays(plan).run(3);
      }
}

// Where there is room for one, beside its square, what is taken back has left its place when the next one is brought.
TEST(HostStateReplays, ShareOnePlace) {
  const Plan plan = planned(updates_of(4), true, false);
  EXPECT_EQ(plan.arena_bytes, 2 * kMomentBytes);
  EXPECT_EQ(host_traffic(plan).written, 4 * kMomentBytes);
  Replays(plan).run(3);
}

// With room, moments are brought as early as the copies of the replay before allow, and wait for these.
TEST(HostStateReplays, BringNothingBeforeItIsThere) {
  const Plan plan = planned(step_of(24), true);
  ASSERT_TRUE(std::ranges::any_of(plan.launches, &PlannedLaunch::behind));
  ASSERT_GT(plan.first_waiting, 0U);
  EXPECT_EQ(host_end(plan, plan.launches[plan.first_waiting]), HostEnd::from);
  Replays(plan).run(3);
}

}  // namespace
}  // namespace fullbore
