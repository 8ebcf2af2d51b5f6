#include <algorithm>

#include "fullbore/device/registry.h"
#include "fullbore/plan/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "fullbore/ops/ops.h"

namespace fullbore {
namespace {

const MachinePeaks kPeaks = {1e9, 2e9, 1e9};

Plan plan_of(GraphBuilder& builder) {
  return make_plan(builder.take(), *open_device("null")->compiler(), {.workers = 2});
}

// y = tanh(a b): one matmul of 2 * 8 * 4 * 16 operations and one sweep.
TEST(PlanReport, AddsUpByKind) {
  GraphBuilder builder("step");
  const Tensor a = builder.input("a", Role::batch, {DType::f32, {8, 4}});
  const Tensor b = builder.input("b", Role::parameter, {DType::f32, {4, 16}});
  builder.output("y", tanh(matmul(a, b)));
  const Plan plan = plan_of(builder);
  const PlanReport report = report_plan(plan, kPeaks);

  ASSERT_EQ(report.kinds.size(), 2U);
  EXPECT_EQ(report.kinds[0].name, "tanh") << "10 flops per element: the longer of the two";
  EXPECT_EQ(report.kinds[1].name, "matmul");
  EXPECT_EQ(report.kinds[1].launches, 1);
  EXPECT_EQ(report.kinds[1].flops, 2 * 8 * 4 * 16);
  EXPECT_EQ(report.kinds[1].bytes, 4 * (8 * 4 + 4 * 16 + 8 * 16));
  EXPECT_EQ(report.launches, 2);
  EXPECT_DOUBLE_EQ(report.roofline_seconds,
                   report.kinds[0].roofline_seconds + report.kinds[1].roofline_seconds);
  EXPECT_EQ(report.peak_bytes, plan.peak_bytes());
  EXPECT_EQ(report.peak_bytes, report.state_bytes + report.arena_bytes + report.batch_bytes +
                                   report.result_bytes + report.constant_bytes);
  EXPECT_EQ(report.state_bytes, 4 * 16 * 4);
}

TEST(PlanReport, LaunchesInALoopCountOncePerIteration) {
  GraphBuilder builder("step");
  const Tensor x = builder.input("x", Role::batch, {DType::f32, {16}});
  const LoopResult result = loop(builder, {x}, {}, {.iterations = 5}, [](const LoopBody& body) {
    return IterationResults{.carried = {tanh(body.carried[0])}};
  });
  builder.output("y", result.carried[0]);
  const PlanReport report = report_plan(plan_of(builder), kPeaks);
  const auto found = std::find_if(report.kinds.begin(), report.kinds.end(),
                                  [](const LaunchKind& kind) { return kind.name == "tanh"; });
  ASSERT_NE(found, report.kinds.end());
  EXPECT_EQ(found->launches, 5);
  EXPECT_DOUBLE_EQ(found->roofline_seconds, report.roofline_seconds);
}

TEST(PlanReport, CountsTheIterationsThatWereMadeWhereItIsToldOfThem) {
  GraphBuilder builder("step");
  const Tensor x = builder.input("x", Role::batch, {DType::f32, {16}});
  const Tensor count = builder.input("count", Role::batch, {DType::i64, {}});
  const LoopResult result = loop(
      builder, {x}, {}, {.iterations = 5, .count = count},
      [](const LoopBody& body) { return IterationResults{.carried = {tanh(body.carried[0])}}; });
  builder.output("y", result.carried[0]);
  const Plan plan = plan_of(builder);
  const PlanReport most = report_plan(plan, kPeaks);
  EXPECT_TRUE(most.at_most);
  EXPECT_THAT(text(most), ::testing::HasSubstr("were all loops to run to their ends"));
  LoopIterations made = most_iterations(plan);
  for (double& each : made) each *= 0.5;  // the mean of runs of two and of three
  const PlanReport report = report_plan(plan, kPeaks, made);
  EXPECT_FALSE(report.at_most);
  EXPECT_DOUBLE_EQ(report.flops, most.flops / 2);
  EXPECT_DOUBLE_EQ(report.roofline_seconds, most.roofline_seconds / 2);
  const auto found = std::ranges::find(report.kinds, "tanh", &LaunchKind::name);
  ASSERT_NE(found, report.kinds.end());
  EXPECT_EQ(found->flops, most.flops / 2);
}

TEST(PlanReport, LargestBuffersComeFirstAndAreLimited) {
  GraphBuilder builder("step");
  Tensor x = builder.input("x", Role::batch, {DType::f32, {100}});
  for (const int64_t width : {10, 300, 200}) x = tanh(broadcast_to(slice(x, 0, 0, 1), {width}));
  builder.output("y", x);
  const PlanReport report = report_plan(plan_of(builder), kPeaks, {}, 3);
  ASSERT_EQ(report.largest.size(), 3U);
  EXPECT_EQ(report.largest[0].bytes, 1200);
  EXPECT_GE(report.largest[1].bytes, report.largest[2].bytes);
}

TEST(PlanReport, TextAndJsonTellTheSame) {
  GraphBuilder builder("step");
  builder.output("y", tanh(builder.input("x", Role::batch, {DType::f32, {1000}})));
  const PlanReport report = report_plan(plan_of(builder), kPeaks);
  const nlohmann::ordered_json json = to_json(report);
  EXPECT_EQ(json["peak_bytes"], report.peak_bytes);
  EXPECT_EQ(json["launches_by_kind"][0]["name"], "tanh");
  EXPECT_EQ(json["largest_buffers"].size(), report.largest.size());
  EXPECT_THAT(text(report), ::testing::HasSubstr(std::to_string(report.peak_bytes)));
  EXPECT_THAT(text(report), ::testing::HasSubstr("tanh"));
}

}  // namespace
}  // namespace fullbore
