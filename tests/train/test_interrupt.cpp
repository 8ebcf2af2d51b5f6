#include "fullbore/train/interrupt.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>

#include "tests/support/scratch_folder.h"

namespace fullbore {
namespace {

TEST(Interrupt, FirstSignalIsRememberedAndHandlersAreTakenAway) {
  {
    const InterruptGuard guard;
    EXPECT_FALSE(guard.requested());
    raise(SIGTERM);
    EXPECT_TRUE(guard.requested());
    EXPECT_EQ(guard.signal(), SIGTERM);
    raise(SIGINT);
    EXPECT_EQ(guard.signal(), SIGTERM) << "the first one counts";
  }
  const InterruptGuard again;
  EXPECT_FALSE(again.requested()) << "a new run starts afresh";
}

TEST(Interrupt, ABatchSystemMayRepeatItself) {
  const InterruptGuard guard;
  raise(SIGUSR1);
  raise(SIGTERM);
  raise(SIGTERM);
  raise(SIGINT);
  EXPECT_EQ(guard.signal(), SIGUSR1);
}

TEST(InterruptDeathTest, WithNothingToSaveASignalEndsTheProcessAtOnce) {
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGUSR1})
    EXPECT_EXIT(
        {
          const LeaveOnSignal leave("fullbore train x.yaml");
          { const InterruptGuard guard; }  // gives back what it found
          raise(number);
          _exit(0);
        },
        ::testing::KilledBySignal(number),
        "before anything was saved; start again with: fullbore train x.yaml\n");
}

TEST(InterruptDeathTest, WhatIsAdvisedDependsOnWhatIsThereWhenTheSignalComes) {
  const ::fullbore::testing::ScratchFolder folder;
  const auto leave_by_signal = [&] {
    LeaveOnSignal leave("begin");
    EXPECT_EQ(leave.resume(), "");
    leave.run_is(folder / "config", folder / "last", "resume");
    raise(SIGTERM);
    _exit(0);
  };
  EXPECT_EXIT(leave_by_signal(), ::testing::KilledBySignal(SIGTERM), "start again with: begin\n");
  folder.put("config", "");
  EXPECT_EXIT(leave_by_signal(), ::testing::KilledBySignal(SIGTERM), "start again with: resume\n");
  folder.put("last", "");
  EXPECT_EXIT(leave_by_signal(), ::testing::ExitedWithCode(75),
              "nothing new to save; go on with: resume\n");
}

TEST(InterruptDeathTest, WhenAllIsDoneSignalsChangeNothing) {
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGUSR1})
    EXPECT_EXIT(
        {
          {
            LeaveOnSignal leave("");
            leave.done();
            raise(number);
          }
          raise(number);
          _exit(0);
        },
        ::testing::ExitedWithCode(0), "");
}

TEST(InterruptDeathTest, ASecondInterruptFromTheKeyboardEndsTheProcess) {
  EXPECT_EXIT(
      {
        const InterruptGuard guard;
        raise(SIGINT);
        raise(SIGINT);
        _exit(0);
      },
      ::testing::KilledBySignal(SIGINT), "");
}

TEST(Interrupt, IgnoredSignalsStayIgnored) {
  std::signal(SIGHUP, SIG_IGN);
  {
    const InterruptGuard guard;
    raise(SIGHUP);
    EXPECT_FALSE(guard.requested());
  }
  EXPECT_EQ(std::signal(SIGHUP, SIG_DFL), SIG_IGN);
}

}  // namespace
}  // namespace fullbore
