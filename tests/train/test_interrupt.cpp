#include "fullbore/train/interrupt.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
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

TEST(Interrupt, ClosedPipesEndNoRun) {
  struct sigaction before = {}, within = {}, after = {};
  sigaction(SIGPIPE, nullptr, &before);
  signal(SIGPIPE, SIG_DFL);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  close(ends[0]);
  {
    const ClosedPipes closed_pipes;
    sigaction(SIGPIPE, nullptr, &within);
    EXPECT_EQ(write(ends[1], "x", 1), -1);
    EXPECT_EQ(errno, EPIPE);
  }
  close(ends[1]);
  sigaction(SIGPIPE, nullptr, &after);
  EXPECT_EQ(within.sa_handler, SIG_IGN);
  EXPECT_EQ(after.sa_handler, SIG_DFL) << "what the program had set is put back";
  sigaction(SIGPIPE, &before, nullptr);
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
