// Loops whose counts depend on data as conditional nodes of a graph: the bits and counts of loops that the host steps, and no
// wait of the host. What is taken away from such a graph is missed.
#include <gmock/gmock.h>

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "fullbore/base/error.h"
#include "fullbore/device/cuda/driver/result_code.h"
#include "tests/cuda/loop_programs.h"

namespace fullbore::cuda {
namespace {

using ::testing::HasSubstr;

/// Rows of the memory of these programs. Each iteration has one of the last ones.
enum Row : int64_t { kCount, kIndex, kFrom, kTo, kExecuted, kSum, kFlag, kFlags = 8, kStack = 60 };
constexpr size_t kRows = 120;

class LoopsOnCard : public LoopPrograms {
 protected:
  /// Values that are exchanged, a stack whose other rows are cleared, the index and the number of iterations.
  Record counted(int64_t most, bool reverse) const {
    return [=, this](Recorder& recorder, Address memory) {
      const LaunchOperand from = row(memory, kFrom), to = row(memory, kTo);
      const LaunchOperand next = exchanged(from, to, 0), now = exchanged(to, from, 0);
      const LaunchOperand sum = row(memory, kSum), stacked = row(memory, kStack, {kBytes});
      mix(recorder, 0, sum, to, sum);
      recorder.begin_loop(1, {.iterations = most,
                              .reverse = reverse,
                              .count = row(memory, kCount),
                              .index = row(memory, kIndex),
                              .executed = row(memory, kExecuted)});
      mix(recorder, 2, now, row(memory, kIndex), next);
      mix(recorder, 3, next, sum, stacked);
      mix(recorder, 4, stacked, sum, sum);
      recorder.exchange(from, to, kBytes);
      recorder.clear_rows(row(memory, kStack), kBytes);
      recorder.end_loop();
      mix(recorder, 5, to, row(memory, kExecuted), sum);
    };
  }
  /// Each iteration carries its own flag to where the loop looks at it.
  Record stopped(int64_t most, bool reverse, bool has_count) const {
    return [=, this](Recorder& recorder, Address memory) {
      const LaunchOperand sum = row(memory, kSum);
      LoopRange range{.iterations = most, .reverse = reverse, .stop = row(memory, kFlag)};
      if (has_count) range.count = row(memory, kCount);
      recorder.begin_loop(1, range);
      mix(recorder, 2, sum, row(memory, kStack, {kBytes}), sum);
      recorder.carry(row(memory, kFlags, {kBytes}), row(memory, kFlag), 8);
      recorder.end_loop();
      mix(recorder, 3, sum, sum, row(memory, kTo));
    };
  }
  /// The flag of one iteration is set; less than 0: of none.
  static Words flagged(int64_t iteration, uint64_t count = 0) {
    Words words = drawn(kRows, count);
    words[kFlag * kWords] = 0;
    for (int64_t i = 0; i < kStack - kFlags; ++i)
      words[static_cast<size_t>(kFlags + i) * kWords] = i == iteration ? 1 : 0;
    return words;
  }
  static void expect_alone(const Outcome& outcome, const std::string& what) {
    EXPECT_EQ(outcome.graph_launches, 1) << what;
    EXPECT_EQ(outcome.waits, 0) << what;
    // The states of loops are cleared and the graph is launched, each behind a call that says which card it is for.
    EXPECT_EQ(outcome.calls, 4) << what;
  }
};

TEST_F(LoopsOnCard, MakeAsManyIterationsAsTheirCount) {
  for (const int64_t most : {1, 5, 16, 17, 40})
    for (const bool reverse : {false, true})
      for (const int64_t count :
           {int64_t{-3}, int64_t{0}, int64_t{1}, most / 2 + 1, most - 1, most, int64_t{1} << 40}) {
        const std::string what = testing::PrintToString(
            std::vector<int64_t>{most, static_cast<int64_t>(reverse), count});
        const Outcome outcome =
            checked(drawn(kRows, static_cast<uint64_t>(count)), {1}, counted(most, reverse));
        const int64_t wanted = std::clamp<int64_t>(count, 0, most);
        EXPECT_EQ(outcome.iterations, std::vector<int64_t>{wanted}) << what;
        EXPECT_EQ(outcome.memory[kExecuted * kWords], static_cast<uint64_t>(wanted)) << what;
        for (int64_t i = 0; i < most; ++i) {
          const bool is_made = i < wanted;
          const size_t word = static_cast<size_t>(kStack + i) * kWords + 1;
          EXPECT_EQ(outcome.memory[word] != 0, is_made) << what << ", row " << i;
        }
        expect_alone(outcome, what);
        if (HasFailure()) return;
      }
}

TEST_F(LoopsOnCard, EndByTheirFlag) {
  for (const int64_t most : {3, 20})
    for (const bool reverse : {false, true})
      for (const int64_t flag : {int64_t{-1}, int64_t{0}, most / 2, most - 1}) {
        const Outcome outcome = checked(flagged(flag), {1}, stopped(most, reverse, false));
        const int64_t executed = flag < 0 ? most : reverse ? most - flag : flag + 1;
        EXPECT_EQ(outcome.iterations, std::vector<int64_t>{executed})
            << most << " " << reverse << " " << flag;
        expect_alone(outcome, "by a flag");
      }
  // Both: whichever comes first.
  for (const int64_t flag : {1, 3}) {
    const Outcome outcome = checked(flagged(flag, 3), {1}, stopped(5, false, true));
    EXPECT_EQ(outcome.iterations, std::vector<int64_t>{flag == 1 ? 2 : 3});
    const Outcome backwards = checked(flagged(flag, 3), {1}, stopped(5, true, true));
    EXPECT_EQ(backwards.iterations, std::vector<int64_t>{flag == 1 ? 2 : 3});
  }
}

// Of each iteration of the outer loop another count, and within the inner one a loop of a known count.
TEST_F(LoopsOnCard, HaveLoopsInThem) {
  Words before = drawn(kRows, 3);
  const std::vector<int64_t> counts = {2, 0, 5, 4};
  for (size_t i = 0; i < counts.size(); ++i)
    before[(kFlags + i) * kWords] = static_cast<uint64_t>(counts[i]);
  const Outcome outcome = checked(before, {0, 1, 2}, [&](Recorder& recorder, Address memory) {
    const LaunchOperand sum = row(memory, kSum), to = row(memory, kTo);
    recorder.begin_loop(0, {.iterations = 4, .count = row(memory, kCount)});
    recorder.begin_loop(1,
                        {.iterations = 4, .reverse = true, .count = row(memory, kFlags, {kBytes})});
    recorder.begin_loop(2, {.iterations = 3});
    mix(recorder, 3, sum, row(memory, kStack, {4 * kBytes, kBytes}), sum);
    recorder.end_loop();
    mix(recorder, 4, sum, to, row(memory, kStack + 20, {4 * kBytes, kBytes}));
    recorder.clear_rows(row(memory, kStack + 20, {4 * kBytes}), kBytes);
    recorder.end_loop();
    mix(recorder, 5, sum, to, to);
    recorder.end_loop();
    mix(recorder, 6, to, sum, row(memory, kFrom));
  });
  EXPECT_EQ(outcome.iterations, (std::vector<int64_t>{3, 6, 18}));
  expect_alone(outcome, "loops in loops");
}

// One program: counts are those of its last run, by graphs or while it is profiled.
TEST_F(LoopsOnCard, GoOnFromWhatRunsBeforeLeft) {
  const auto words_after = [&](bool is_profiled) {
    const auto device = open();
    const auto memory = device->allocate(static_cast<int64_t>(kRows) * kBytes);
    Words words = drawn(kRows);
    device->write(memory->address(), std::as_bytes(std::span(words)));
    const auto recorder = device->record();
    counted(5, true)(*recorder, memory->address());
    const auto program = recorder->finish();
    for (const int64_t count : {3, 5, 0, 2}) {
      device->write(memory->address(), std::as_bytes(std::span(&count, 1)));
      program->set_profiling(is_profiled && count % 2 == 0);
      program->run();
      program->wait();
      EXPECT_EQ(program->iterations_made(1), count);
      EXPECT_EQ(program->iterations_made(1), count);
    }
    device->read(memory->address(), std::as_writable_bytes(std::span(words)));
    return words;
  };
  EXPECT_EQ(words_after(true), words_after(false));
}

TEST_F(LoopsOnCard, AreSteppedWhereTheDriverHasNoSuchNodes) {
  const Words before = drawn(kRows, 3);
  const Outcome wanted = outcome_of(before, {1}, counted(5, false));
  EXPECT_EQ(wanted.graph_launches, 1);
  const auto expect_stepped = [&](const char* why) {
    const Outcome outcome = outcome_of(before, {1}, counted(5, false));
    EXPECT_EQ(outcome.memory, wanted.memory) << why;
    EXPECT_EQ(outcome.iterations, wanted.iterations) << why;
    EXPECT_EQ(outcome.graph_launches, 2 + 3) << why;
    EXPECT_GT(outcome.waits, 0) << why;
  };
  fake().version = kWithoutConditionalNodes;
  expect_stepped("another driver");
  fake().version = kWithConditionalNodes;
  // The second module is one of loops.
  for (const int64_t refusal : {kInvalidPtx, kSymbolNotFound, kNotSupported}) {
    std::string("cuModuleLoadDataEx").copy(fake().fail_call, sizeof fake().fail_call - 1);
    fake().fail_code = refusal;
    fake().fail_at = 2;
    expect_stepped("code that is not linked");
    EXPECT_EQ(fake().fail_at, 0);
  }
}

TEST_F(LoopsOnCard, AreSteppedWhereTheyWouldBeTooManyNodes) {
  const Outcome outcome = checked(drawn(kRows, 2), {0, 1}, [&](Recorder& recorder, Address memory) {
    const LaunchOperand sum = row(memory, kSum);
    recorder.begin_loop(0, {.iterations = 4000, .count = row(memory, kCount)});
    recorder.begin_loop(1, {.iterations = 3, .count = row(memory, kCount)});
    mix(recorder, 2, sum, row(memory, kTo), sum);
    recorder.end_loop();
    recorder.end_loop();
  });
  EXPECT_EQ(outcome.iterations, (std::vector<int64_t>{2, 4}));
  EXPECT_GT(outcome.waits, 0);
}

class PlantedInLoops : public LoopsOnCard {
 protected:
  /// Whether a graph without some of its nodes or edges gives other results, in some order.
  bool is_missed(char* what, const char* name, const Words& before, const Record& record) const {
    fake().seed = 0;
    const Outcome intact = outcome_of(before, {1}, record);
    std::string(name).copy(what, 63);
    const int64_t lost = fake().lost_in_graphs;
    bool is_missed = false;
    for (uint64_t seed = 0; seed < 12 && !is_missed; ++seed) {
      fake().seed = seed;
      const Outcome outcome = outcome_of(before, {1}, record);
      is_missed = outcome.memory != intact.memory || outcome.iterations != intact.iterations;
    }
    EXPECT_GT(fake().lost_in_graphs, lost) << name << " is not there";
    std::fill_n(what, 64, '\0');
    return is_missed;
  }
};

// Three iterations of five: the values are copied, and two rows cleared.
TEST_F(PlantedInLoops, KernelsThatAreLeftOutAreMissed) {
  for (const char* const name : {"begin_loop", "decide_iteration", "conditional", "end_iteration",
                                 "settle_exchange", "clear_rows", "finish_loop"})
    EXPECT_TRUE(is_missed(fake().lose_nodes, name, drawn(kRows, 3), counted(5, false))) << name;
  // Backwards, and odd where all of them would be even: swapped before and behind.
  EXPECT_TRUE(is_missed(fake().lose_nodes, "settle_exchange", drawn(kRows, 3), counted(4, true)));
}

TEST_F(PlantedInLoops, DependenciesThatAreLeftOutAreMissed) {
  for (const char* const name :
       {"begin_loop>decide_iteration", "decide_iteration>conditional",
        "conditional>decide_iteration", "conditional>settle_exchange", "finish_loop>mix"})
    EXPECT_TRUE(is_missed(fake().lose_edges, name, drawn(kRows, 3), counted(5, false))) << name;
  for (const char* const name :
       {"copy>end_iteration", "conditional>finish_loop", "conditional>mix"})
    EXPECT_TRUE(is_missed(fake().lose_edges, name, flagged(1), stopped(5, false, false))) << name;
}

TEST_F(LoopsOnCard, GiveBackWhatTheyTookWhicheverCallFails) {
  for (const char* const call :
       {"cuGraphConditionalHandleCreate", "cuGraphAddNode", "cuGraphAddKernelNode_v2",
        "cuGraphAddMemsetNode", "cuGraphInstantiateWithFlags", "cuGraphLaunch",
        "cuModuleLoadDataEx", "cuModuleGetFunction", "cuMemAlloc_v2", "cuMemHostAlloc",
        "cuMemsetD8Async", "cuMemcpyDtoHAsync_v2"}) {
    int64_t failures = 0;
    for (int64_t at = 1;; ++at) {
      std::string(call).copy(fake().fail_call, sizeof fake().fail_call - 1);
      fake().fail_call[std::string(call).size()] = '\0';
      fake().fail_code = kUnknown;
      fake().fail_at = at;
      const std::string message =
          message_of<Error>([&] { outcome_of(drawn(kRows, 2), {1}, counted(2, true)); });
      if (fake().fail_at > 0) break;
      ++failures;
      EXPECT_THAT(message, HasSubstr(call));
      const FakeCuda& now = fake();
      EXPECT_EQ(now.allocations + now.pinned + now.streams + now.events + now.modules + now.graphs +
                    now.contexts,
                0)
          << call << ": " << message;
    }
    fake().fail_at = 0;
    EXPECT_GT(failures, 0) << call;
  }
}

}  // namespace
}  // namespace fullbore::cuda
