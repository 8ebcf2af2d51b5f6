#include "fullbore/plan/cast_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "fullbore/autodiff/backward.h"
#include "fullbore/ops/ops.h"
#include "fullbore/passes/pass.h"

namespace fullbore {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// A layer, its gradient and an update, as the passes leave them.
Graph optimised_step(DType precision, bool keeps_derived_weights = false) {
  GraphBuilder builder("step");
  const Tensor x = builder.input("x", Role::batch, {DType::f32, {16, 8}});
  const Tensor w = builder.input("w", Role::parameter, {DType::f32, {8, 8}});
  builder.push_scope("layers.0");
  const Tensor h = gelu(matmul(x, w));
  const Tensor y = gelu(matmul(h, w));
  builder.pop_scope();
  const Tensor loss = reduce_mean(y * y, {0, 1});
  const std::vector<Tensor> wanted = {w};
  builder.output("loss", loss);
  builder.output("w", w - gradient(loss, wanted)[0] * 0.1, 1);
  Target target;
  target.precision = precision;
  target.keeps_derived_weights = keeps_derived_weights;
  return run_passes(builder.take(), target);
}

TEST(CastReport, SaysOfEachCastWhatAndWhy) {
  const std::vector<CastUse> uses = casts_of(optimised_step(DType::bf16));
  const auto weight = std::find_if(uses.begin(), uses.end(),
                                   [](const CastUse& use) { return use.what == "parameter w"; });
  ASSERT_NE(weight, uses.end());
  EXPECT_TRUE(weight->in_memory);
  EXPECT_EQ(weight->from.text(), "f32[8,8]");
  EXPECT_EQ(weight->to.dtype, DType::bf16);
  EXPECT_THAT(weight->reason, StartsWith("operand of matmul layers.0 ("));
  EXPECT_THAT(weight->reason, HasSubstr(" more"));
  for (const CastUse& use : uses) {
    EXPECT_FALSE(use.reason.empty());
    if (!use.in_memory && is_low_precision(use.from.dtype)) {
      EXPECT_EQ(use.reason, "arithmetic is f32");
    }
  }
  EXPECT_TRUE(std::any_of(uses.begin(), uses.end(), [](const CastUse& use) {
    return use.reason.starts_with("stored for: operand of matmul");
  }));
  EXPECT_THAT(casts_text(optimised_step(DType::bf16)), HasSubstr("are launches, "));
}

// The cast of a weight is one of its new value, for the matmuls of the run to come.
TEST(CastReport, NamesTheProductsThatCopiesAreKeptFor) {
  const std::vector<CastUse> uses = casts_of(optimised_step(DType::bf16, true));
  EXPECT_TRUE(
      std::ranges::none_of(uses, [](const CastUse& use) { return use.what == "parameter w"; }));
  EXPECT_EQ(std::ranges::count_if(uses,
                                  [](const CastUse& use) {
                                    return use.reason.starts_with(
                                        "stored for: the next run: operand of matmul layers.0 (");
                                  }),
            1);
}

TEST(CastReport, SaysOfCopiesThatAreOnlyReadWhoReadsThem) {
  GraphBuilder builder("reader");
  const Tensor x = builder.input("x", Role::batch, {DType::f32, {16, 8}});
  const Tensor w = builder.input("w", Role::parameter, {DType::f32, {8, 8}});
  builder.output("y", matmul(x, w));
  Target target;
  target.precision = DType::bf16;
  target.keeps_derived_weights = true;
  const std::vector<CastUse> uses = casts_of(run_passes(builder.take(), target));
  const auto weight = std::ranges::find(uses, "parameter w", &CastUse::what);
  ASSERT_NE(weight, uses.end());
  EXPECT_EQ(weight->from.dtype, DType::f32);
  EXPECT_EQ(weight->to.dtype, DType::bf16);
  EXPECT_THAT(weight->reason, StartsWith("kept for all runs: operand of matmul"));
}

TEST(CastReport, ThereAreNoneInF32) {
  EXPECT_TRUE(casts_of(optimised_step(DType::f32)).empty());
  EXPECT_EQ(casts_text(optimised_step(DType::f32)),
            "0 changes of precision, of which 0 are launches, 0 B moved\n");
}

}  // namespace
}  // namespace fullbore
