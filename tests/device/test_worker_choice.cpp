// When one worker makes a program alone, on a machine whose times are told.
#include "fullbore/device/cpu/executor/worker_choice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

namespace fullbore::cpu {
namespace {

constexpr int64_t kMillisecond = 1'000'000;
constexpr int64_t kSecond = 1'000'000'000;

struct Machine {
  int64_t together_ns = 0;  ///< a run of all workers
  int64_t alone_ns = 0;
  double delayed = 0;  ///< share of the time in which workers together wait for processors
};

struct Session {
  WorkerChoice choice;
  int64_t now_ns = 0;

  /// The share of the time of runs that were made alone, and how much longer all took than the best way would have.
  struct Found {
    double alone = 0;
    double excess = 0;
  };
  Found run(const Machine& machine, int64_t nanoseconds) {
    int64_t alone_ns = 0, busy_ns = 0, runs = 0, window_ns = now_ns;
    for (const int64_t end_ns = now_ns + nanoseconds; now_ns < end_ns;) {
      if (choice.window_begins()) window_ns = now_ns;
      const bool alone = choice.alone();
      const int64_t taken = alone ? machine.alone_ns : machine.together_ns;
      const int64_t begin_ns = now_ns;
      now_ns += taken;
      busy_ns += taken;
      ++runs;
      if (alone) alone_ns += taken;
      if (choice.ran(begin_ns, now_ns))
        choice.decide(alone ? 0
                            : static_cast<int64_t>(machine.delayed *
                                                   static_cast<double>(now_ns - window_ns)));
    }
    const auto best = static_cast<double>(runs * std::min(machine.together_ns, machine.alone_ns));
    return {static_cast<double>(alone_ns) / static_cast<double>(busy_ns),
            static_cast<double>(busy_ns) / best - 1};
  }
};

constexpr Machine kQuiet = {5 * kMillisecond, 9 * kMillisecond, 0.01};
constexpr Machine kBusy = {40 * kMillisecond, 9 * kMillisecond, 0.6};
// Four workers, one of which a neighbour delays: one worker alone would be slower still.
constexpr Machine kShared = {8 * kMillisecond, 20 * kMillisecond, 0.4};

TEST(WorkerChoice, NeverTriesOneWorkerOnAQuietMachine) {
  Session session;
  EXPECT_EQ(session.run(kQuiet, 60 * kSecond).alone, 0);
}

TEST(WorkerChoice, RunsAloneBesideANeighbourAndTogetherWhenThatIsGone) {
  Session session;
  session.run(kQuiet, 2 * kSecond);
  const Session::Found busy = session.run(kBusy, 60 * kSecond);
  EXPECT_GT(busy.alone, 0.9);
  EXPECT_LT(busy.excess, 0.08);
  session.run(kQuiet, 5 * kSecond);  // no longer than the longest pause
  EXPECT_LT(session.run(kQuiet, 10 * kSecond).alone, 0.01);
}

TEST(WorkerChoice, TriesThatLoseBecomeRare) {
  Session session;
  session.run(kShared, 10 * kSecond);
  const Session::Found found = session.run(kShared, 600 * kSecond);
  EXPECT_GT(found.alone, 0);
  EXPECT_LT(found.alone, 0.005);
}

// A run of two seconds is a window.
TEST(WorkerChoice, OneRunIsEnoughWhereRunsAreLong) {
  Session session;
  const Machine busy = {2 * kSecond, kSecond, 0.6};
  session.run(busy, 5 * kSecond);
  EXPECT_GT(session.run(busy, 100 * kSecond).alone, 0.5);
}

// Short runs between long ones of other programs: the window is as long as those make it.
TEST(WorkerChoice, DelaysAreJudgedByTheTimeInWhichTheyCame) {
  WorkerChoice choice;
  int64_t now_ns = 0;
  for (int i = 0; i < 100; ++i) {
    now_ns += 100 * kMillisecond;  // the others
    if (!choice.ran(now_ns, now_ns + 20 * kMillisecond)) continue;
    choice.decide(20 * kMillisecond);  // of 220 ms, in which 60 were its own
    ASSERT_FALSE(choice.alone());
  }
}

}  // namespace
}  // namespace fullbore::cpu
