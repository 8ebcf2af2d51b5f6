#include "fullbore/device/registry.h"
#include "fullbore/plan/timeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "fullbore/ops/ops.h"
#include "fullbore/plan/launch_list.h"
#include "fullbore/plan/memory.h"

namespace fullbore {
namespace {

using ::testing::HasSubstr;

// A chain of matmuls: each intermediate lives from its launch to the next.
Plan chain(bool reuse = true) {
  GraphBuilder builder("step");
  Tensor x = builder.input("x", Role::batch, {DType::f32, {32, 32}});
  const Tensor w = builder.input("w", Role::parameter, {DType::f32, {32, 32}});
  for (int i = 0; i < 4; ++i) x = matmul(x, w);
  builder.output("y", x);
  return make_plan(builder.take(), *open_device("null")->compiler(),
                   {.workers = 1, .reuse_memory = reuse});
}

TEST(Timeline, LiveBytesAreThoseOfTheBuffersThatLive) {
  const Plan plan = chain();
  const std::vector<int64_t> live = live_bytes(plan);
  ASSERT_FALSE(live.empty());
  for (size_t launch = 0; launch < live.size(); ++launch) {
    int64_t expected = 0;
    for (const Buffer& buffer : plan.buffers)
      if (buffer.space == Space::arena && buffer.first <= static_cast<int>(launch) &&
          static_cast<int>(launch) <= buffer.last)
        expected += aligned_bytes(buffer.bytes, plan.alignment);
    EXPECT_EQ(live[launch], expected) << launch;
  }
  EXPECT_EQ(*std::max_element(live.begin(), live.end()), 2 * 32 * 32 * 4)
      << "at most a matmul's operand and its result";
  EXPECT_LE(*std::max_element(live.begin(), live.end()), plan.arena_bytes);
}

TEST(Timeline, HasALinePerBufferWithItsBar) {
  const Plan plan = chain();
  const auto buffers = std::count_if(plan.buffers.begin(), plan.buffers.end(), [](const Buffer& b) {
    return b.space == Space::arena && b.bytes > 0;
  });
  const std::string text = timeline_text(plan, 20);
  EXPECT_THAT(text, HasSubstr(std::to_string(plan.arena_bytes)));
  std::istringstream lines(text);
  int bars = 0;
  for (std::string line; std::getline(lines, line);) {
    const size_t begin = line.find('|');
    if (begin == std::string::npos) continue;
    ++bars;
    EXPECT_EQ(line.find('|', begin + 1), begin + 21) << line;
    EXPECT_GE(std::count(line.begin(), line.end(), '#'), 1) << line;
    EXPECT_THAT(line, HasSubstr("matmul"));
  }
  EXPECT_EQ(bars, buffers);
}

TEST(Timeline, TellsWhatThreadGroupsHaveEach) {
  GraphBuilder builder("step");
  const Tensor x = builder.input("x", Role::batch, {DType::f32, {3, 32, 32}});
  const LoopResult rows =
      loop(builder, {}, {x}, {.iterations = 3, .parallel = true}, [](const LoopBody& body) {
        const Tensor gemm = matmul(body.slices[0], body.slices[0]);
        return IterationResults{.carried = {}, .stacked = {matmul(gemm, body.slices[0])}};
      });
  builder.output("sum", reduce_sum(rows.stacked[0], {0}));
  const Plan plan = make_plan(builder.take(), *open_device("null")->compiler(), {.workers = 3});
  const std::string text = timeline_text(plan);
  EXPECT_THAT(text, HasSubstr("matmul (of each of 3 thread groups)"));
  EXPECT_THAT(text, testing::Not(HasSubstr("memory of")));
  const std::vector<int64_t> live = live_bytes(plan);
  // Three matmuls, the rows stacked of them, and three indices.
  EXPECT_EQ(*std::max_element(live.begin(), live.end()), 6 * 32 * 32 * 4 + 3 * 64);
  EXPECT_LE(*std::max_element(live.begin(), live.end()), plan.arena_bytes);
}

TEST(Timeline, LaunchesBehindALoopFindTheirMoment) {
  GraphBuilder builder("step");
  const Tensor x = builder.input("x", Role::batch, {DType::f32, {3, 32, 32}});
  const LoopResult rows = loop(builder, {}, {x}, {.iterations = 3}, [](const LoopBody& body) {
    return IterationResults{.carried = {}, .stacked = {matmul(body.slices[0], body.slices[0])}};
  });
  const Tensor sum = reduce_sum(rows.stacked[0], {0});
  builder.output("y", matmul(sum, sum));
  const Plan plan = make_plan(builder.take(), *open_device("null")->compiler(), {.workers = 1});
  const std::vector<int64_t> live = live_bytes_by_entry(plan);
  ASSERT_EQ(live.size(), launch_list(plan).size());
  constexpr int64_t kMatrix = 32 * 32 * 4;
  EXPECT_EQ(live.back(), kMatrix) << "the rows of the loop are gone, and the result is elsewhere";
  EXPECT_EQ(live[live.size() - 2], 4 * kMatrix) << "the sum beside them";
}

TEST(Timeline, OfAPlanWithoutAnArenaIsAHeading) {
  GraphBuilder builder("step");
  builder.output("y", tanh(builder.input("x", Role::batch, {DType::f32, {8}})));
  const Plan plan = make_plan(builder.take(), *open_device("null")->compiler(), {.workers = 1});
  ASSERT_EQ(plan.arena_bytes, 0);
  EXPECT_THAT(timeline_text(plan), HasSubstr("arena 0 bytes"));
}

}  // namespace
}  // namespace fullbore
