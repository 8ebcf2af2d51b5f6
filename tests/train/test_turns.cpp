#include "fullbore/train/turns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <thread>
#include <utility>
#include <vector>

#include "fullbore/base/error.h"

namespace fullbore {
namespace {

using testing::SizeIs;

TEST(Turns, AreOfTheStepsThatAreGrantedAndReportThem) {
  TurnSockets sockets = make_turn_sockets();
  std::thread run([&] {
    Turns turns(std::move(sockets.running));
    for (int step = 0; step < 5; ++step) {
      ASSERT_TRUE(turns.wait([] { return false; }));
      turns.step_made(4);
    }
    turns.finish();
  });
  TurnReport report;
  const auto read = [&] {
    while (read_turn(sockets.granting, 1000, report) == TurnAnswer::nothing) {
    }
  };
  read();
  EXPECT_THAT(report.step_seconds, SizeIs(0));
  for (const int64_t steps : {2, 3}) {
    ASSERT_TRUE(grant_turn(sockets.granting, steps));
    read();
    EXPECT_THAT(report.step_seconds, SizeIs(static_cast<size_t>(steps)));
    EXPECT_EQ(report.samples, 4.0 * static_cast<double>(steps));
    EXPECT_GT(report.resident_peak_bytes, 0);
  }
  run.join();
  EXPECT_EQ(read_turn(sockets.granting, 1000, report), TurnAnswer::gone);
}

TEST(Turns, BeginOnTheCoreThatIsNamedAndMayLeaveIt) {
  cpu_set_t allowed;
  ASSERT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(static_cast<size_t>(core), &allowed)) cores.push_back(core);
  if (cores.size() < 2) GTEST_SKIP() << "one core";
  constexpr int kTurns = 60;
  TurnSockets sockets = make_turn_sockets();
  std::vector<int> begun;
  bool stays_free = true;
  std::thread run([&] {
    Turns turns(std::move(sockets.running));
    for (int turn = 0; turn < kTurns; ++turn) {
      ASSERT_TRUE(turns.wait([] { return false; }));
      begun.push_back(sched_getcpu());
      cpu_set_t now;
      stays_free =
          stays_free && sched_getaffinity(0, sizeof now, &now) == 0 && CPU_EQUAL(&now, &allowed);
      turns.step_made(1);
    }
    turns.finish();
  });
  TurnReport report;
  for (int turn = 0; turn <= kTurns; ++turn) {
    while (read_turn(sockets.granting, 1000, report) == TurnAnswer::nothing) {
    }
    if (turn == kTurns) break;
    ASSERT_TRUE(grant_turn(sockets.granting, 1, cores[static_cast<size_t>(turn % 2)]));
  }
  run.join();
  EXPECT_TRUE(stays_free);
  int there = 0;
  for (int turn = 0; turn < kTurns; ++turn)
    there += begun[static_cast<size_t>(turn)] == cores[static_cast<size_t>(turn % 2)] ? 1 : 0;
  // The system may move it at once; a thread that stays where it is would have half.
  EXPECT_GE(there, kTurns * 5 / 6);
}

TEST(Turns, OnACoreThatThereIsNotAreMadeWhereTheRunIs) {
  TurnSockets sockets = make_turn_sockets();
  std::thread run([&] {
    Turns turns(std::move(sockets.running));
    for (int step = 0; step < 2; ++step) {
      ASSERT_TRUE(turns.wait([] { return false; }));
      turns.step_made(1);
    }
    turns.finish();
  });
  TurnReport report;
  for (const int core : {1 << 20, -7}) {
    while (read_turn(sockets.granting, 1000, report) == TurnAnswer::nothing) {
    }
    ASSERT_TRUE(grant_turn(sockets.granting, 1, core));
  }
  while (read_turn(sockets.granting, 1000, report) == TurnAnswer::nothing) {
  }
  EXPECT_GE(report.core, 0);
  run.join();
}

}  // namespace
}  // namespace fullbore
