#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "workloads/chess/batch_clock.h"

namespace fullbore::chess {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

/// Every look at it takes a second.
struct TickingClock {
  BatchClock::Clock::time_point operator()() {
    return BatchClock::Clock::time_point(std::chrono::seconds(++*seconds));
  }
  int* seconds;
};

TEST(BatchClock, PhasesSumToAllOfTheTime) {
  int seconds = 0;
  BatchClock clock(TickingClock{&seconds});
  EXPECT_THAT(clock.figures(), IsEmpty());
  clock.start("prompts");
  const int begin = seconds;
  clock.enter("decode");
  seconds += 20;
  clock.enter("rewards");
  seconds += 5;
  clock.enter("prompts");
  seconds += 3;
  clock.enter("decode");
  seconds += 9;
  clock.give("prefill", 4);
  clock.enter("batch");
  clock.stop();
  EXPECT_THAT(clock.figures(),
              ElementsAre(Pair("seconds/prompts", 1 + 4), Pair("seconds/decode", 21 + 10 - 4),
                          Pair("seconds/rewards", 6), Pair("seconds/prefill", 4),
                          Pair("seconds/batch", 1)));
  double sum = 0;
  for (const auto& [name, value] : clock.figures()) sum += value;
  EXPECT_EQ(sum, seconds - begin);
  clock.start("batch");
  clock.stop();
  EXPECT_THAT(clock.figures(), ElementsAre(Pair("seconds/batch", 1)));
  clock.clear();
  EXPECT_THAT(clock.figures(), IsEmpty());
}

}  // namespace
}  // namespace fullbore::chess
