// Loops that the host steps, whose bodies are graphs: each iteration has its own places, with few calls of the driver.
#include <gmock/gmock.h>

#include <cstring>
#include <functional>
#include <vector>

#include "tests/cuda/fake_card.h"
#include "tests/cuda/mixing_program.h"

namespace fullbore::cuda {
namespace {

constexpr int64_t kBytes = MixingKernel::kBytes;
constexpr size_t kWords = MixingKernel::kElements;
using Words = std::vector<uint64_t>;

class SteppedGraphs : public FakeCard {
 protected:
  struct Outcome {
    Words memory;
    int64_t calls = 0, graph_launches = 0, iterations = 0;  ///< of a run
  };
  using Record = std::function<void(Recorder&, Address)>;

  /// What the second of two runs does; `loop` is the one whose iterations are told.
  static Outcome outcome_of(const Words& before, int loop, const Record& record) {
    const auto device = open();
    const auto bytes = static_cast<int64_t>(8 * before.size());
    const auto memory = device->allocate(bytes);
    const auto recorder = device->record();
    record(*recorder, memory->address());
    const auto program = recorder->finish();
    Outcome outcome;
    for (int run = 0; run < 2; ++run) {
      device->write(memory->address(), std::as_bytes(std::span(before)));
      const int64_t calls = fake().calls, launches = fake().graph_launches;
      program->run();
      outcome.calls = fake().calls - calls;
      outcome.graph_launches = fake().graph_launches - launches;
      program->wait();
    }
    outcome.iterations = program->iterations_made(loop);
    outcome.memory.resize(before.size());
    device->read(memory->address(), std::as_writable_bytes(std::span(outcome.memory)));
    return outcome;
  }

  /// Launch by launch, in any order that is drawn, and by graphs: the same bits. Returns how it went with graphs.
  static Outcome checked(const Words& before, int loop, const Record& record) {
    const Outcome graphs = outcome_of(before, loop, record);
    for (const uint64_t seed : {1, 2, 3}) {
      fake().seed = seed;
      EXPECT_EQ(outcome_of(before, loop, record).memory, graphs.memory) << "seed " << seed;
    }
    fake().seed = 0;
    const Variable blocking("FULLBORE_CUDA_BLOCKING", "1");
    const Outcome alone = outcome_of(before, loop, record);
    EXPECT_EQ(alone.memory, graphs.memory);
    EXPECT_EQ(alone.iterations, graphs.iterations);
    EXPECT_EQ(alone.graph_launches, 0);
    return graphs;
  }

  /// The first word is a count.
  static Words drawn(size_t rows, uint64_t count = 0) {
    Words words(rows * kWords);
    for (size_t i = 0; i < words.size(); ++i) words[i] = i * 2654435761 % 251;
    words[0] = count;
    return words;
  }
  LaunchOperand row(Address memory, int64_t index, std::vector<int64_t> strides = {}) const {
    return {.base = memory + index * kBytes, .strides = std::move(strides)};
  }
  void mix(Recorder& recorder, int id, const LaunchOperand& x, const LaunchOperand& y,
           const LaunchOperand& to) const {
    recorder.launch(id, *kernel_.node, std::vector<LaunchOperand>{x, y, to}, true);
  }

  MixingKernel kernel_;
};

// 2100 iterations of ten nodes are too many for one graph. Two launches move: two calls of the driver in each iteration, one
// that launches, and one that says which card it is for.
TEST_F(SteppedGraphs, TakeACallForEachLaunchThatMoves) {
  constexpr int64_t kIterations = 2100, kRows = 2 + kIterations;
  const Outcome outcome = checked(drawn(kRows), 1, [&](Recorder& recorder, Address memory) {
    const LaunchOperand sum = row(memory, 0), other = row(memory, 1);
    const LaunchOperand moving = row(memory, 2, {kBytes});
    recorder.begin_loop(1, {.iterations = kIterations});
    mix(recorder, 2, sum, moving, sum);
    for (int id = 3; id < 9; ++id) mix(recorder, id, sum, other, id % 2 == 0 ? sum : other);
    mix(recorder, 9, sum, other, moving);
    recorder.end_loop();
  });
  EXPECT_EQ(outcome.graph_launches, kIterations);
  EXPECT_EQ(outcome.iterations, kIterations);
  EXPECT_EQ(outcome.calls, 4 * kIterations);
}

// What one iteration reads and another overwrites follows one another in each of them. Rows by rows of an outer loop
// and backwards.
TEST_F(SteppedGraphs, OrderWhatMayMeetInSomeIteration) {
  constexpr int64_t kInner = 4, kOuter = 3;
  const Outcome outcome = checked(drawn(24, 3), 1, [&](Recorder& recorder, Address memory) {
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
  EXPECT_EQ(outcome.iterations, 9);
  EXPECT_EQ(outcome.graph_launches, 9);
}

// Loops of known counts are within the graphs of what is around them. What is exchanged lies here and there in turns, and
// nothing else moves.
TEST_F(SteppedGraphs, HaveInnerLoopsInThem) {
  constexpr int64_t kOuter = 5, kInner = 7;
  const Outcome outcome = checked(drawn(60, 4), 1, [&](Recorder& recorder, Address memory) {
    LaunchOperand here = row(memory, 1), there = row(memory, 2);
    recorder.begin_loop(0, {.iterations = kOuter, .count = row(memory, 0)});
    recorder.exchange(here, there, kBytes);
    here.exchanged_by = there.exchanged_by = {0};
    here.exchanged_bases = {here.base, there.base};
    there.exchanged_bases = {there.base, here.base};
    recorder.begin_loop(1, {.iterations = kInner});
    mix(recorder, 2, here, row(memory, 10, {0, kBytes}), there);
    mix(recorder, 3, there, row(memory, 3), row(memory, 3));
    recorder.end_loop();
    recorder.end_loop();
  });
  EXPECT_EQ(outcome.iterations, 4 * kInner);
  EXPECT_EQ(outcome.graph_launches, 4);
}

// Few launches are not worth a graph of their own.
TEST_F(SteppedGraphs, AreNotMadeOfFewLaunches) {
  const Outcome outcome = checked(drawn(8, 4), 0, [&](Recorder& recorder, Address memory) {
    recorder.begin_loop(0, {.iterations = 5, .count = row(memory, 0)});
    for (int id = 1; id < 4; ++id)
      mix(recorder, id, row(memory, 1), row(memory, 2), row(memory, 1));
    recorder.end_loop();
  });
  EXPECT_EQ(outcome.iterations, 4);
  EXPECT_EQ(outcome.graph_launches, 0);
}

}  // namespace
}  // namespace fullbore::cuda
