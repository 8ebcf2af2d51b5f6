#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "fullbore/base/philox.h"
#include "fullbore/nn/mamba2.h"
#include "fullbore/nn/rms_norm.h"
#include "fullbore/nn/rwkv6.h"
#include "tests/support/evaluate.h"
#include "tests/support/interpret_by_name.h"

namespace fullbore {
namespace {

using ::testing::HasSubstr;

// A reset makes the rest of a segment what it would be as a stream of its own.
TEST(RecurrentLayers, BeginAnewBehindAReset) {
  const auto run_all = [](int64_t tokens, bool resets) {
    Trace trace("t", false);
    const Tensor x = trace.batch("x", {DType::f32, {1, tokens, 8}});
    const Tensor flags = resets ? trace.batch("resets", {DType::boolean, {1, tokens}}) : Tensor();
    Tensor y = nn::rwkv6_time_mix(trace, "time", x,
                                  {.heads = 2,
                                   .mix_rank = 2,
                                   .decay_rank = 3,
                                   .initializers = nn::TimeMixInitializers::of_layer(0, 2, 8),
                                   .resets = flags})
                   .y;
    y = nn::rwkv6_channel_mix(trace, "channel", y, {.width = 16, .resets = flags}).y;
    y = nn::mamba2(trace, "mamba", y, {.inner = 16, .heads = 2, .states = 4, .resets = flags}).y;
    trace.result("y", y);
    std::map<std::string, Literal> inputs;
    for (const Trace::Parameter& each : trace.parameters()) {
      PhiloxStream draws(inputs.size() + 1);
      Literal literal(each.tensor.type());
      for (double& value : literal.reals()) value = draws.normal();
      inputs[each.name] = literal;
    }
    Literal given({DType::f32, {1, tokens, 8}});
    for (int64_t i = 0; i < given.elements(); ++i)
      given.put(i, std::sin(static_cast<double>(i + (6 - tokens) * 8)));
    inputs["x"] = given;
    if (resets) inputs["resets"] = integers(DType::boolean, {1, tokens}, {0, 0, 1, 0, 0, 0});
    return interpret_by_name(trace.finish(), inputs).at("y");
  };
  const Literal whole = run_all(6, true), rest = run_all(4, false);
  for (int64_t i = 0; i < rest.elements(); ++i) EXPECT_NEAR(whole.at(2 * 8 + i), rest.at(i), 1e-12);
}

// --- initial values, errors --------------------------------------------------------------------------

TEST(RecurrentLayers, StartAsTheirAuthorsSay) {
  const auto first = nn::TimeMixInitializers::of_layer(0, 8, 128);
  EXPECT_DOUBLE_EQ(first.mix_k.values[64], 0.5);
  EXPECT_DOUBLE_EQ(first.mix_r.values[64], 1 - std::sqrt(0.5));
  EXPECT_DOUBLE_EQ(first.decay.values[0], -6);
  EXPECT_DOUBLE_EQ(first.decay.values[127], -1);
  EXPECT_NEAR(first.bonus.values[1], 0.1, 1e-15);
  EXPECT_NEAR(first.norm.values[5], std::pow(1 / 8.0, 0.7), 1e-15);
  const auto last = nn::TimeMixInitializers::of_layer(7, 8, 128);
  EXPECT_NEAR(last.mix_v.values[64], 1 - (std::pow(0.5, 1 / 8.0) + 0.3), 1e-15);
  EXPECT_NEAR(last.bonus.values[0], 1, 1e-15);

  Trace trace("t", true);
  nn::mamba2(trace, "m", trace.batch("x", {DType::f32, {1, 2, 8}}),
             {.inner = 16, .heads = 2, .states = 4});
  const auto softplus_of = [](double x) { return std::log1p(std::exp(x)); };
  const std::vector<double>& bias = trace.initializers().at("m.step_bias").values;
  EXPECT_NEAR(softplus_of(bias[0]), 1e-3 * std::sqrt(10), 1e-12);
  EXPECT_NEAR(softplus_of(bias[1]), 1e-2 * std::sqrt(10), 1e-12);
  EXPECT_NEAR(std::exp(trace.initializers().at("m.decay").values[1]), 12.25, 1e-12);
}

TEST(RecurrentLayers, NameWhatDoesNotFit) {
  Trace trace("t", true);
  const Tensor x = trace.batch("x", {DType::f32, {1, 2, 8}});
  const Tensor flat = trace.batch("flat", {DType::f32, {2, 8}});
  EXPECT_THAT(usage_error([&] { nn::rwkv6_time_mix(trace, "a", x, {.heads = 3}); }),
              HasSubstr("rwkv6_time_mix: width 8 is not a multiple of 3 heads"));
  EXPECT_THAT(usage_error([&] { nn::rwkv6_static_mix(trace, "b", flat, {}); }),
              HasSubstr("rwkv6_static_mix: needs x [B,T,C], got f32[2,8]"));
  EXPECT_THAT(usage_error([&] { nn::rwkv6_channel_mix(trace, "c", flat, {}); }),
              HasSubstr("rwkv6_channel_mix: needs x [B,T,C]"));
  EXPECT_THAT(usage_error([&] { nn::mamba2(trace, "d", x, {.inner = 15, .heads = 2}); }),
              HasSubstr("mamba2: inner width 15 is not a multiple of 2 heads"));
  EXPECT_THAT(usage_error([&] { nn::mamba2(trace, "e", flat, {.inner = 16, .heads = 2}); }),
              HasSubstr("mamba2: needs x [B,T,C], got f32[2,8]"));
  const Tensor scalar = trace.batch("scalar", {DType::f32, {}});
  EXPECT_THAT(usage_error([&] { nn::rms_norm(trace, "f", scalar); }),
              HasSubstr("rms_norm: needs x [..., C], got f32[]"));
}

}  // namespace
}  // namespace fullbore
