// Loops that the host steps, whose bodies are graphs: each iteration has its own places, with few calls of the driver.
#include <gtest/gtest.h>

#include <vector>

#include "tests/cuda/loop_programs.h"

namespace fullbore::cuda {
namespace {

/// On a driver without conditional nodes.
class SteppedGraphs : public LoopPrograms {
 protected:
  void SetUp() override {
    LoopPrograms::SetUp();
    fake().version = kWithoutConditionalNodes;
  }
};

// 2100 iterations of ten nodes are too many for one graph. Two launches move: two calls of the driver in each iteration, one
// that launches, and one that says which card it is for.
TEST_F(SteppedGraphs, TakeACallForEachLaunchThatMoves) {
  constexpr int64_t kIterations = 2100, kRows = 2 + kIterations;
  const Outcome outcome = checked(drawn(kRows), {1}, [&](Recorder& recorder, Address memory) {
    const LaunchOperand sum = row(memory, 0), other = row(memory, 1);
    const LaunchOperand moving = row(memory, 2, {kBytes});
    recorder.begin_loop(1, {.iterations = kIterations});
    mix(recorder, 2, sum, moving, sum);
    for (int id = 3; id < 9; ++id) mix(recorder, id, sum, other, id % 2 == 0 ? sum : other);
    mix(recorder, 9, sum, other, moving);
    recorder.end_loop();
  });
  EXPECT_EQ(outcome.graph_launches, kIterations);
  EXPECT_EQ(outcome.iterations, std::vector<int64_t>{kIterations});
  EXPECT_EQ(outcome.calls, 4 * kIterations);
}

// What one iteration reads and another overwrites follows one another in each of them. Rows by rows of an outer loop
// and backwards.
TEST_F(SteppedGraphs, OrderWhatMayMeetInSomeIteration) {
  constexpr int64_t kInner = 4, kOuter = 3;
  const Outcome outcome = checked(drawn(24, 3), {1}, [&](Recorder& recorder, Address memory) {
    const LaunchOperand count = row(memory, 0), number = row(memory, 1);
    recorder.begin_loop(0, {.iterations = kOuter, .count = count});
    recorder.begin_loop(1,
                        {.iterations = kInner, .reverse = true, .count = count, .index = number});
    // Row 12 is read here, and written by the next launch in one iteration alone.
    mix(recorder, 2, row(memory, 12), number, row(memory, 4));
    mix(recorder, 3, number, number, row(memory, 10, {kBytes, kBytes}));
    mix(recorder, 4, row(memory, 4), row(memory, 11), row(memory, 18, {0, -kBytes}));
    mix(recorder, 5, row(memory, 5), row(memory, 17, {-kBytes, 0}), row(memory, 5));
    recorder.carry(row(memory, 5), row(memory, 20, {kBytes, 0}), kBytes);
    recorder.end_loop();
    mix(recorder, 6, row(memory, 5), row(memory, 4), row(memory, 6));
    recorder.end_loop();
  });
  EXPECT_EQ(outcome.iterations, std::vector<int64_t>{9});
  EXPECT_EQ(outcome.graph_launches, 9);
}

// Loops of known counts are within the graphs of what is around them. What is exchanged lies here and there in turns, and
// nothing else moves.
TEST_F(SteppedGraphs, HaveInnerLoopsInThem) {
  constexpr int64_t kOuter = 5, kInner = 7;
  const Outcome outcome = checked(drawn(60, 4), {1}, [&](Recorder& recorder, Address memory) {
    const LaunchOperand outer_here = row(memory, 1), outer_there = row(memory, 2);
    const LaunchOperand here = exchanged(outer_here, outer_there, 0);
    const LaunchOperand there = exchanged(outer_there, outer_here, 0);
    recorder.begin_loop(0, {.iterations = kOuter, .count = row(memory, 0)});
    recorder.exchange(outer_here, outer_there, kBytes);
    recorder.begin_loop(1, {.iterations = kInner});
    mix(recorder, 2, here, row(memory, 10, {0, kBytes}), there);
    mix(recorder, 3, there, row(memory, 3), row(memory, 3));
    recorder.end_loop();
    recorder.end_loop();
  });
  EXPECT_EQ(outcome.iterations, std::vector<int64_t>{4 * kInner});
  EXPECT_EQ(outcome.graph_launches, 4);
}

// Few launches are not worth a graph of their own.
TEST_F(SteppedGraphs, AreNotMadeOfFewLaunches) {
  const Outcome outcome = checked(drawn(8, 4), {0}, [&](Recorder& recorder, Address memory) {
    recorder.begin_loop(0, {.iterations = 5, .count = row(memory, 0)});
    for (int id = 1; id < 4; ++id)
      mix(recorder, id, row(memory, 1), row(memory, 2), row(memory, 1));
    recorder.end_loop();
  });
  EXPECT_EQ(outcome.iterations, std::vector<int64_t>{4});
  EXPECT_EQ(outcome.graph_launches, 0);
}

}  // namespace
}  // namespace fullbore::cuda
