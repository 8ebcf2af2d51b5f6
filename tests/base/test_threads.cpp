#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "fullbore/base/error.h"
#include "fullbore/base/start_thread.h"
#include "fullbore/base/threads.h"
#include "tests/support/refused_threads.h"

namespace fullbore {
namespace {

class ThreadPoolOf : public ::testing::TestWithParam<int> {};

TEST_P(ThreadPoolOf, EveryWorkerRunsOnce) {
  ThreadPool pool(GetParam());
  std::vector<std::atomic<int>> runs(static_cast<size_t>(pool.workers()));
  for (int repeat = 0; repeat < 1000; ++repeat)
    pool.run(
        [](void* context, int worker) {
          ++(*static_cast<std::vector<std::atomic<int>>*>(context))[static_cast<size_t>(worker)];
        },
        &runs);
  for (const auto& count : runs) EXPECT_EQ(count, 1000);
}

struct Relay {
  Barrier barrier;
  std::vector<int64_t> plain;  // not atomic: the barrier alone orders the accesses
  int rounds;
};

// Each round every worker adds up what all wrote in the round before: any missing ordering shows as
// a wrong sum (or as a data race under TSan).
TEST_P(ThreadPoolOf, BarrierOrdersPlainWrites) {
  ThreadPool pool(GetParam());
  const auto n = static_cast<size_t>(pool.workers());
  Relay relay{Barrier(GetParam()), std::vector<int64_t>(2 * n, 1), 2000};
  pool.run(
      [](void* context, int worker) {
        Relay& r = *static_cast<Relay*>(context);
        const size_t count = r.plain.size() / 2;
        for (int round = 0; round < r.rounds; ++round) {
          const size_t read = static_cast<size_t>(round % 2) * count;
          const size_t write = count - read;
          int64_t sum = 0;
          for (size_t i = 0; i < count; ++i) sum += r.plain[read + i];
          r.plain[write + static_cast<size_t>(worker)] = sum % 1000003;
          r.barrier.wait();
        }
      },
      &relay);
  int64_t expected = 1;
  for (int round = 0; round < relay.rounds; ++round)
    expected = expected * static_cast<int64_t>(n) % 1000003;
  for (size_t i = 0; i < n; ++i) EXPECT_EQ(relay.plain[i], expected);
}

TEST_P(ThreadPoolOf, ParallelForCoversTheRangeOnce) {
  ThreadPool pool(GetParam());
  for (int64_t n : {0, 1, 2, 7, 1000}) {
    std::vector<int> hits(static_cast<size_t>(n), 0);
    pool.parallel_for(n, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) ++hits[static_cast<size_t>(i)];
    });
    for (int hit : hits) EXPECT_EQ(hit, 1);
  }
}

INSTANTIATE_TEST_SUITE_P(Workers, ThreadPoolOf, ::testing::Values(1, 2, 3, 5));

std::string refusal_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const DataError& error) {
    return error.what();
  }
  return "nothing was refused";
}

TEST(RefusedThread, OfAThreadPoolIsAnErrorThatSaysWhy) {
  for (const int allowed : {0, 1, 3}) {
    const fullbore::testing::RefusedThreads refused(allowed);
    EXPECT_EQ(ThreadPool(allowed + 1).workers(), allowed + 1);
  }
  for (const int allowed : {0, 2}) {
    const fullbore::testing::RefusedThreads refused(allowed);
    const std::string error = refusal_of([] { ThreadPool pool(4); });
    EXPECT_NE(error.find("cannot start a thread for a worker of the step: Resource temporarily "
                         "unavailable; fewer engine.threads"),
              std::string::npos)
        << error;
    EXPECT_EQ(refused.refused(), 1);
  }
  EXPECT_EQ(ThreadPool(4).workers(), 4) << "the next one is whole";
}

TEST(RefusedThread, OfHelpersLeavesTheWorkToTheOthers) {
  for (const int allowed : {0, 1, 3, 8}) {
    const fullbore::testing::RefusedThreads refused(allowed);
    std::atomic<int> next{0}, done{0};
    const auto work = [&] {
      while (next++ < 100) ++done;
    };
    {
      const auto helpers = start_helpers(4, work);
      EXPECT_EQ(helpers.size(), static_cast<size_t>(std::min(allowed, 4)));
      work();
    }
    EXPECT_EQ(done, 100);
  }
}

TEST(Processors, AtLeastOne) { EXPECT_GE(available_processors(), 1); }

}  // namespace
}  // namespace fullbore
