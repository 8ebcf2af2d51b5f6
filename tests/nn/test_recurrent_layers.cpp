#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "fullbore/autodiff/backward.h"
#include "fullbore/base/philox.h"
#include "fullbore/nn/mamba2.h"
#include "fullbore/nn/rms_norm.h"
#include "fullbore/nn/rwkv6.h"
#include "hybrid_model.h"
#include "tests/support/evaluate.h"
#include "tests/support/interpret_by_name.h"

namespace fullbore {
namespace {

using ::testing::HasSubstr;

// --- sizes -------------------------------------------------------------------------------------------

TEST(RecurrentLayers, HaveAsManyParametersAsRecorded) {
  const auto of = [](bool finch, const char* part) {
    Trace trace("t", true);
    run(trace, preset(finch), trace.batch("tokens", {DType::i32, {1, 3}}), {}, 64);
    return parameter_count(trace, part);
  };
  EXPECT_EQ(of(true, ""), 3130720);
  EXPECT_EQ(of(false, ""), 3585376);
  EXPECT_EQ(of(true, "layers.3.rwkv."), 140544);
  EXPECT_EQ(of(false, "layers.3.rwkv."), 197376);
  EXPECT_EQ(of(true, "layers.3.mamba."), 117388);
  EXPECT_EQ(of(true, "layers.3.mamba.input"), 82432);
  EXPECT_EQ(of(true, "layers.3.mamba.convolution"), 1920);
  EXPECT_EQ(of(true, "layers.3.rwkv.mix"), 768 + 40960);
  EXPECT_EQ(of(true, "layers.3.rwkv.decay"), 128 + 16384);
}

// --- golden models: computed once outside of this project, in double ---------------------------------

double norm(const Literal& x) {
  double squares = 0;
  for (const double value : x.reals()) squares += value * value;
  return std::sqrt(squares);
}

/// Loss, logits, states and gradients of a golden model.
class Golden {
 public:
  explicit Golden(bool finch) {
    const Hybrid model{.finch = finch};
    Trace trace("t", true);
    const TensorType type{DType::i32, {2, 7}};
    const Tensor tokens = trace.batch("tokens", type), targets = trace.batch("targets", type);
    const Run made = run(trace, model, tokens, {}, 4);
    const Tensor loss = reduce_mean(cross_entropy(made.logits, targets), {0, 1});
    trace.result("loss", loss);
    trace.result("logits", made.logits);
    for (size_t layer = 0; layer < made.states.size(); ++layer) {
      trace.result(fmt::format("S{}", layer), made.states[layer].time_mix.memory);
      trace.result(fmt::format("h{}", layer), made.states[layer].mamba.memory);
    }
    std::vector<Tensor> parameters;
    for (const Trace::Parameter& each : trace.parameters()) parameters.push_back(each.tensor);
    const Tensor one = full(trace.builder(), loss.type(), 1);
    const std::vector<Tensor> gradients =
        backward(trace.builder(), std::span(&loss, 1), std::span(&one, 1), parameters);
    for (size_t i = 0; i < gradients.size(); ++i)
      trace.result("d " + trace.parameters()[i].name, gradients[i]);
    std::map<std::string, Literal> inputs = golden_parameters(trace, model);
    parameters_ = parameter_count(trace);
    std::vector<double> x, y;
    for (int64_t b = 0; b < 2; ++b)
      for (int64_t t = 0; t < 7; ++t) {
        x.push_back(static_cast<double>((3 * b + 5 * t + t * t) % 11));
        y.push_back(static_cast<double>((3 * static_cast<int64_t>(x.back()) + 1) % 11));
      }
    inputs["tokens"] = integers(DType::i32, {2, 7}, x);
    inputs["targets"] = integers(DType::i32, {2, 7}, y);
    results_ = interpret_by_name(trace.finish(), inputs);
  }

  const Literal& operator[](const std::string& name) const { return results_.at(name); }
  double d(const std::string& name, int64_t i) const { return results_.at("d " + name).at(i); }
  int64_t parameters() const { return parameters_; }
  /// Of the gradients of all parameters whose names have one of the parts.
  double gradient_norm(const std::vector<std::string>& parts) const {
    double squares = 0;
    for (const auto& [name, literal] : results_) {
      if (!name.starts_with("d ")) continue;
      for (const std::string& part : parts)
        if (name.find(part) != std::string::npos) {
          squares += norm(literal) * norm(literal);
          break;
        }
    }
    return std::sqrt(squares);
  }

 private:
  std::map<std::string, Literal> results_;
  int64_t parameters_ = 0;
};

// Parameters and results are f32.
constexpr double kNear = 3e-6;

TEST(RecurrentLayers, MakeTheGoldenModelOfRwkv6) {
  const Golden golden(true);
  EXPECT_EQ(golden.parameters(), 3644);
  EXPECT_NEAR(golden["loss"].at(0), 3.239679747, kNear);
  EXPECT_NEAR(norm(golden["logits"]), 14.0038029, 1e-5);
  const double first[] = {0.1918497, -0.5499008, -1.0448183, -1.0707501};
  const double last[] = {-0.3551260, 0.2471596, 0.7385031, 0.8983560};
  for (int64_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(golden["logits"].at(i), first[i], kNear);
    EXPECT_NEAR(golden["logits"].at(13 * 11 + i), last[i], kNear);
  }
  EXPECT_NEAR(norm(golden["S0"]), 10.9583948, 1e-5);
  EXPECT_NEAR(norm(golden["S1"]), 1.3717548, kNear);
  EXPECT_NEAR(norm(golden["h0"]), 1.8551749, kNear);
  EXPECT_NEAR(norm(golden["h1"]), 0.0752800, kNear);
  EXPECT_NEAR(golden.gradient_norm({".rwkv"}), 15.4891156, 2e-5);
  EXPECT_NEAR(golden.gradient_norm({".mamba"}), 3.4996247, 1e-5);
  EXPECT_NEAR(golden.gradient_norm({"d "}), 17.3544556, 2e-5);
  EXPECT_NEAR(golden.d("embed.weight", 3 * 8 + 2), -0.22421590, kNear);
  EXPECT_NEAR(golden.d("layers.0.rwkv.mix.k", 1), 0.29274414, kNear);
  EXPECT_NEAR(golden.d("layers.0.rwkv.mix.up", (2 * 2 + 1) * 8 + 3), -0.47182653, kNear);
  EXPECT_NEAR(golden.d("layers.0.rwkv.decay.base", 0), -0.01793048, kNear);
  EXPECT_NEAR(golden.d("layers.1.rwkv.bonus", 1 * 4 + 2), -0.51211405, kNear);
  EXPECT_NEAR(golden.d("layers.0.mamba.decay", 1), -0.00102057, kNear);
  EXPECT_NEAR(golden.d("layers.1.mamba.convolution.weight", 5 * 4 + 2), 0.08872291, kNear);
  EXPECT_NEAR(golden.d("layers.0.mamba.step_bias", 0), 0.00233241, kNear);
  EXPECT_NEAR(golden.d("layers.1.down.weight", 0), 0.00348778, kNear);
  EXPECT_NEAR(golden.d("layers.0.rwkv_gain", 3), 0.14392306, kNear);
}

TEST(RecurrentLayers, MakeTheGoldenModelOfStaticDecays) {
  const Golden golden(false);
  EXPECT_EQ(golden.parameters(), 4060);
  EXPECT_NEAR(golden["loss"].at(0), 2.796197538, kNear);
  EXPECT_NEAR(norm(golden["logits"]), 9.0288848, 1e-5);
  EXPECT_NEAR(norm(golden["S0"]), 27.4502827, 3e-5);
  EXPECT_NEAR(norm(golden["S1"]), 2.6763305, kNear);
  EXPECT_NEAR(norm(golden["h0"]), 1.7133105, kNear);
  EXPECT_NEAR(norm(golden["h1"]), 0.0635364, kNear);
  EXPECT_NEAR(golden.gradient_norm({".rwkv"}), 2.4655681, 1e-5);
  EXPECT_NEAR(golden.gradient_norm({".mamba"}), 1.7118740, 1e-5);
  EXPECT_NEAR(golden.d("layers.0.rwkv.decay", 1), -0.00685865, kNear);
  EXPECT_NEAR(golden.d("layers.0.rwkv.up.weight", 2 * 8 + 3), 0.00920018, kNear);
  EXPECT_NEAR(golden.d("layers.1.mamba.skip", 0), 0.02097635, kNear);
  EXPECT_NEAR(golden.d("layers.0.mamba_gain", 3), 0.05846039, kNear);
}

// --- streams -----------------------------------------------------------------------------------------

using States = std::map<std::string, Literal>;

/// Logits of a segment of the golden model, and the states behind it by name; those before by the same.
std::map<std::string, Literal> run_segment(const std::vector<double>& tokens,
                                           const States& before) {
  const Hybrid model;
  const auto count = static_cast<int64_t>(tokens.size());
  Trace trace("t", false);
  const Tensor x = trace.batch("tokens", {DType::i32, {1, count}});
  const auto state = [&](const std::string& name, Shape shape) {
    return trace.batch(name, {DType::f32, std::move(shape)});
  };
  std::vector<LayerState> states;
  for (int64_t layer = 0; layer < model.layers; ++layer)
    states.push_back({{state(fmt::format("previous{}", layer), {1, 8}),
                       state(fmt::format("S{}", layer), {1, 2, 4, 4})},
                      {state(fmt::format("history{}", layer), {1, 3, 24}),
                       state(fmt::format("h{}", layer), {1, 2, 4, 8})}});
  const Run made = run(trace, model, x, states, 4);
  trace.result("logits", made.logits);
  for (size_t layer = 0; layer < made.states.size(); ++layer) {
    trace.result(fmt::format("previous{}", layer), made.states[layer].time_mix.previous);
    trace.result(fmt::format("S{}", layer), made.states[layer].time_mix.memory);
    trace.result(fmt::format("history{}", layer), made.states[layer].mamba.history);
    trace.result(fmt::format("h{}", layer), made.states[layer].mamba.memory);
  }
  std::map<std::string, Literal> inputs = golden_parameters(trace, model);
  inputs["tokens"] = integers(DType::i32, {1, count}, tokens);
  for (const auto& [name, literal] : before) inputs[name] = literal;
  return interpret_by_name(trace.finish(), inputs);
}

/// The largest difference of logits when the same tokens come in segments of these lengths; a state whose
/// name begins with `forgotten` is not handed on.
double difference(const std::vector<size_t>& lengths, const std::string& forgotten) {
  const std::vector<double> tokens = {0, 6, 3, 2, 3, 6, 0};
  const auto whole = run_segment(tokens, {});
  States states;
  double most = 0;
  size_t at = 0;
  int64_t logit = 0;
  for (const size_t length : lengths) {
    const auto first = tokens.begin() + static_cast<std::ptrdiff_t>(at);
    auto made = run_segment({first, first + static_cast<std::ptrdiff_t>(length)}, states);
    at += length;
    for (const double x : made.at("logits").reals())
      most = std::max(most, std::abs(x - whole.at("logits").at(logit++)));
    made.erase("logits");
    states.clear();
    for (const auto& [name, literal] : made)
      if (forgotten.empty() || !name.starts_with(forgotten)) states[name] = literal;
  }
  return most;
}

TEST(RecurrentLayers, GoOnFromTheirStates) {
  EXPECT_LE(difference({4, 3}, ""), 1e-12);
  EXPECT_LE(difference({1, 1, 1, 1, 1, 1, 1}, ""), 1e-12);
  for (const char* forgotten : {"previous", "S", "history", "h0"})
    EXPECT_GT(difference({4, 3}, forgotten), 1e-4) << forgotten;
}

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
