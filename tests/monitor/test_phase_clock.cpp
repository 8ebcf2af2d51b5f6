#include "fullbore/monitor/phase_clock.h"

#include <gtest/gtest.h>

#include <chrono>

namespace fullbore {
namespace {

using std::chrono::milliseconds;

TEST(PhaseClock, EveryMomentBelongsToOnePhase) {
  const PhaseClock::Clock::time_point start{};
  PhaseClock clock(start);
  clock.enter(RunPhase::data, start + milliseconds(100));
  clock.enter(RunPhase::step, start + milliseconds(130));
  clock.enter(RunPhase::data, start + milliseconds(150));
  clock.enter(RunPhase::host, start + milliseconds(157));
  const PhaseSeconds seconds = clock.seconds(start + milliseconds(160));
  EXPECT_NEAR(seconds[RunPhase::start], 0.100, 1e-9);
  EXPECT_NEAR(seconds[RunPhase::data], 0.037, 1e-9);
  EXPECT_NEAR(seconds[RunPhase::step], 0.020, 1e-9);
  EXPECT_NEAR(seconds[RunPhase::host], 0.003, 1e-9);  // the one under way counts
  EXPECT_EQ(seconds[RunPhase::evaluation], 0);
  EXPECT_NEAR(seconds.sum(), 0.160, 1e-9);
}

TEST(PhaseClock, AScopeReturnsToThePhaseAroundIt) {
  PhaseClock clock(PhaseClock::Clock::now());
  {
    const PhaseClock::Within evaluation(clock, RunPhase::evaluation);
    {
      const PhaseClock::Within saving(clock, RunPhase::checkpoint);
      EXPECT_EQ(clock.phase(), RunPhase::checkpoint);
    }
    EXPECT_EQ(clock.phase(), RunPhase::evaluation);
  }
  EXPECT_EQ(clock.phase(), RunPhase::start);
}

}  // namespace
}  // namespace fullbore
