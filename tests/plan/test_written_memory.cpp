// What of an arena is surely used, and what only if iterations are made.
#include "fullbore/plan/written_memory.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "fullbore/autodiff/backward.h"
#include "fullbore/device/registry.h"
#include "fullbore/ops/counted_rows.h"

namespace fullbore {
namespace {

constexpr int64_t kIterations = 64;
constexpr int64_t kRow = 512;
constexpr int64_t kStackBytes = kIterations * kRow * 4;

// The gradient of a recurrence whose iterations are all made, or as many as an input says.
Plan plan_of(bool counted, bool nested) {
  GraphBuilder builder("step");
  const Tensor x = builder.input("x", Role::batch, {DType::f32, {kRow}});
  const Tensor count = builder.input("count", Role::batch, {DType::i64, {}});
  LoopOptions options{.iterations = kIterations};
  if (counted) options.count = count;
  const LoopResult result = loop(builder, {x}, {}, options, [&](const LoopBody& body) {
    const auto step = [](Tensor y) { return sin(y) * cos(y + 0.5); };
    if (!nested) return IterationResults{.carried = {step(body.carried[0])}};
    const LoopResult inner = loop(body.carried[0].builder(), {body.carried[0]}, {},
                                  {.iterations = 2}, [&](const LoopBody& within) {
                                    return IterationResults{.carried = {step(within.carried[0])}};
                                  });
    return IterationResults{.carried = {inner.carried[0]}};
  });
  const Tensor loss = reduce_sum(result.carried[0], {0});
  const Tensor wanted[] = {x};
  builder.output("gradient", gradient(loss, wanted)[0]);
  return make_plan(builder.take(), *open_device("null")->compiler(), {.workers = 2});
}

int64_t bytes_of(const std::vector<ByteRange>& ranges) {
  int64_t bytes = 0;
  for (const ByteRange& range : ranges) bytes += range.end - range.begin;
  return bytes;
}

TEST(WrittenMemory, StacksOfCountedLoopsAreLeftOut) {
  for (const bool nested : {false, true}) {
    const Plan all = plan_of(false, nested), some = plan_of(true, nested);
    const Plan* const of_all[] = {&all};
    const Plan* const of_some[] = {&some};
    EXPECT_GE(bytes_of(written_memory(of_all)), kStackBytes) << nested;
    EXPECT_GE(some.arena_bytes, kStackBytes) << nested;
    EXPECT_LT(bytes_of(written_memory(of_some)), kStackBytes / 4) << nested;
    EXPECT_GT(bytes_of(written_memory(of_some)), kRow) << nested;
  }
}

// A store of rows that is gathered again and again, of which `count` rows are looked at if it is counted.
Plan plan_of_store(bool counted) {
  constexpr int64_t kRows = 4096;
  GraphBuilder builder("step");
  const Tensor count = builder.input("count", Role::batch, {DType::i64, {}});
  const Tensor places = builder.input("places", Role::batch, {DType::i32, {kRows, 1}});
  const TensorType store{DType::f32, {kRows, 64}};
  const GatherSumCounts counts = counted ? GatherSumCounts{count, count} : GatherSumCounts{};
  const Tensor begin = counted ? zero_rows(builder, store, count) : full(builder, store, 0);
  const LoopResult result =
      loop(builder, {begin}, {}, {.iterations = 3}, [&](const LoopBody& body) {
        return IterationResults{.carried = {gather_sum(body.carried[0], places, places, counts)}};
      });
  const Tensor first = builder.input("first", Role::batch, {DType::i32, {4, 1}});
  const Tensor back = builder.input("back", Role::batch, {DType::i32, {kRows, 1}});
  builder.output("y", gather_sum(result.carried[0], first, back, counts));
  return make_plan(builder.take(), *open_device("null")->compiler(), {.workers = 2});
}

TEST(WrittenMemory, RowsBeyondACountAreLeftOut) {
  const Plan all = plan_of_store(false), some = plan_of_store(true);
  const Plan* const of_all[] = {&all};
  const Plan* const of_some[] = {&some};
  constexpr int64_t kStore = int64_t{4096} * 64 * 4;
  EXPECT_GE(bytes_of(written_memory(of_all)), 2 * kStore) << "exchanged after each iteration";
  EXPECT_GE(some.arena_bytes, 2 * kStore);
  EXPECT_LT(bytes_of(written_memory(of_some)), kStore / 8);
}

TEST(WrittenMemory, RangesLieInTheArenaApartAndInOrder) {
  const Plan first = plan_of(false, true), second = plan_of(true, false);
  const Plan* const both[] = {&first, &second};
  const std::vector<ByteRange> ranges = written_memory(both);
  ASSERT_FALSE(ranges.empty());
  for (size_t i = 0; i < ranges.size(); ++i) {
    EXPECT_LT(ranges[i].begin, ranges[i].end);
    if (i == 0) continue;
    EXPECT_GT(ranges[i].begin, ranges[i - 1].end);
  }
  EXPECT_GE(ranges.front().begin, 0);
  EXPECT_LE(ranges.back().end, std::max(first.arena_bytes, second.arena_bytes));
}

}  // namespace
}  // namespace fullbore
