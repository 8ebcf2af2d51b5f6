#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "golden_hybrid.h"
#include "tests/support/evaluate.h"
#include "tests/support/gradcheck.h"
#include "tests/support/interpret_by_name.h"
#include "workloads/hybrid/diagnostics.h"

namespace fullbore {
namespace {

using ::testing::HasSubstr;

HybridConfig channel_softmax(int64_t layers) {
  return {
      .branch = HybridBranch::channel_softmax, .vocabulary = 97, .layers = layers, .states = 16};
}

TEST(HybridBranches, TheFirstRunHadAsManyParametersAsRecorded) {
  const auto count = [](const char* part) {
    Trace trace("t", true);
    hybrid(trace, {.tokens = trace.batch("tokens", {DType::i32, {1, 2}})}, channel_softmax(8));
    return parameter_count(trace, part);
  };
  EXPECT_EQ(count(""), 3840256);
  EXPECT_EQ(count("") - count("embed"), 3827840);
  EXPECT_EQ(count("layers.3.rwkv."), 230144);
  EXPECT_EQ(count("layers.3.mamba."), 116480);
}

// --- fusion ------------------------------------------------------------------------------------------

/// y of R and M [1,2,3] by the rule, with parameters that are given or else zero; R = 0.1, 0.2, ..., M = -1, -2, ...
std::vector<double> fused(HybridFusion rule, std::map<std::string, Literal> values) {
  Trace trace("t", false);
  const TensorType type{DType::f32, {1, 2, 3}};
  const Tensor rwkv = trace.batch("rwkv", type), mamba = trace.batch("mamba", type);
  trace.result("y", fuse_branches(trace, rwkv, mamba, {.rule = rule}).y);
  values["rwkv"] = Literal::of(type, {0.1, 0.2, 0.3, 0.4, 0.5, 0.6});
  values["mamba"] = Literal::of(type, {-1, -2, -3, -4, -5, -6});
  const Literal y = interpret_by_name(trace.finish(), values).at("y");
  return {y.reals().begin(), y.reals().end()};
}

TEST(HybridFusion, RulesAreTheirFormulas) {
  const auto vector = [](const std::vector<double>& values) {
    return Literal::of({DType::f32, {static_cast<int64_t>(values.size())}}, values);
  };
  const auto near = [](const std::vector<double>& found, const std::vector<double>& expected) {
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-6) << i;
  };
  // The second token's root mean squares are sqrt(77/3) / 10 and ten times that.
  const double root = std::sqrt(77.0 / 3);
  const std::vector<double> gains =
      fused(HybridFusion::gains, {{"rwkv_gain", vector({1, 2, 3})},
                                  {"mamba_gain", vector({3, 2, 1})},
                                  {"rwkv_norm.weight", vector({1, 1, 1})},
                                  {"mamba_norm.weight", vector({1, 1, 2})}});
  EXPECT_NEAR(gains[3], 4 / root * (1 - 3), 1e-5);
  EXPECT_NEAR(gains[5], 6 / root * (3 - 2), 1e-5);
  // One weight sees R's first channel, one M's last.
  const Literal of_token = Literal::of({DType::f32, {1, 6}}, {10, 0, 0, 0, 0, 0.5});
  const auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
  const double first = sigmoid(1 - 1.5 + 0.25), second = sigmoid(4 - 3 + 0.25);
  near(fused(HybridFusion::gate, {{"gate.weight", of_token}, {"gate.bias", vector({0.25})}}),
       {first * 0.1 - (1 - first), first * 0.2 - 2 * (1 - first), first * 0.3 - 3 * (1 - first),
        second * 0.4 - 4 * (1 - second), second * 0.5 - 5 * (1 - second),
        second * 0.6 - 6 * (1 - second)});
  const double open = sigmoid(2), half = 0.5, shut = sigmoid(-2);
  near(fused(HybridFusion::channel_gate, {{"gate.bias", vector({2, 0, -2})}}),
       {open * 0.1 - (1 - open), half * 0.2 - 1, shut * 0.3 - 3 * (1 - shut),
        open * 0.4 - 4 * (1 - open), half * 0.5 - 2.5, shut * 0.6 - 6 * (1 - shut)});
  Literal projection({DType::f32, {3, 6}});
  projection.put(0, 1);       // R's first
  projection.put(6 + 3, 1);   // M's first
  projection.put(12 + 5, 2);  // twice M's last
  near(fused(HybridFusion::projection, {{"projection.weight", projection}}),
       {0.1, -1, -6, 0.4, -4, -12});
  near(fused(HybridFusion::weighted_sum, {{"share", Literal::of({DType::f32, {}}, {0.25})}}),
       {0.025 - 0.75, 0.05 - 1.5, 0.075 - 2.25, 0.1 - 3, 0.125 - 3.75, 0.15 - 4.5});
  Literal turn({DType::f32, {3, 3}});
  turn.put(2, 1);  // M's last to the first
  near(fused(HybridFusion::residual, {{"mamba_projection.weight", turn}}),
       {0.1 - 3, 0.2, 0.3, 0.4 - 6, 0.5, 0.6});
}

// --- sequences -----------------------------------------------------------------------------------------

struct SequenceCase {
  const char* name;
  HybridConfig config;
};
std::vector<SequenceCase> sequences() {
  HybridConfig finch = golden_hybrid(), fixed = golden_hybrid(HybridBranch::static_decay);
  finch.channel_mix = fixed.channel_mix = true;
  HybridConfig first = golden_hybrid(HybridBranch::channel_softmax), gated = golden_hybrid();
  gated.fusion = HybridFusion::channel_gate;
  return {{"finch", finch}, {"static_decay", fixed}, {"channel_softmax", first}, {"gated", gated}};
}

using Values = std::map<std::string, Literal>;

struct Segment {
  std::vector<double> tokens;
  Values before = {};               ///< states by name, of what run() gave
  std::vector<double> resets = {};  ///< none: no tensor of them
};
/// Logits and states behind it.
Values run(const HybridConfig& config, const Segment& segment) {
  Trace trace("t", false);
  const auto count = static_cast<int64_t>(segment.tokens.size());
  const TensorType type{DType::i32, {1, count}};
  HybridInputs inputs{.tokens = trace.batch("tokens", type)};
  if (!segment.resets.empty()) inputs.resets = trace.batch("resets", {DType::boolean, {1, count}});
  const std::vector<HybridStateTensor> tensors = hybrid_state_tensors(config, 1);
  std::vector<Tensor> state;
  for (const HybridStateTensor& each : tensors) state.push_back(trace.batch(each.name, each.type));
  inputs.state = hybrid_state(config, state);
  const HybridResult made = hybrid(trace, inputs, config);
  trace.result("logits", language_model_logits(trace, made.head));
  const std::vector<Tensor> behind = hybrid_tensors(config, made.state);
  for (size_t i = 0; i < tensors.size(); ++i) {
    EXPECT_EQ(behind[i].type(), tensors[i].type) << tensors[i].name;
    trace.result(tensors[i].name, behind[i]);
  }
  Values values = drawn_parameters(trace);
  values["tokens"] = integers(DType::i32, type.shape, segment.tokens);
  if (!segment.resets.empty())
    values["resets"] = integers(DType::boolean, type.shape, segment.resets);
  for (const auto& [name, literal] : segment.before)
    if (name != "logits") values[name] = literal;
  return interpret_by_name(trace.finish(), values);
}

const std::vector<double> kTokens = {0, 6, 3, 2, 3, 6, 0};

TEST(HybridBranches, AllGoOnFromTheirStates) {
  for (const SequenceCase& sequence : sequences()) {
    const Values whole = run(sequence.config, {kTokens});
    Values states;
    for (size_t t = 0; t < kTokens.size(); ++t) {
      const Values made = run(sequence.config, {{kTokens[t]}, states});
      for (int64_t v = 0; v < 11; ++v)
        EXPECT_NEAR(made.at("logits").at(v),
                    whole.at("logits").at(static_cast<int64_t>(t) * 11 + v), 1e-12)
            << sequence.name << " token " << t;
      states = made;
    }
    for (const HybridStateTensor& each : hybrid_state_tensors(sequence.config, 1))
      for (int64_t i = 0; i < each.type.elements(); ++i)
        EXPECT_NEAR(states.at(each.name).at(i), whole.at(each.name).at(i), 1e-12)
            << sequence.name << each.name;
  }
}

TEST(HybridBranches, AllBeginAnewBehindAReset) {
  for (const SequenceCase& sequence : sequences()) {
    const Values first = run(sequence.config, {kTokens});
    const Values again = run(sequence.config, {kTokens, first, {1, 0, 0, 0, 0, 0, 0}});
    const Values middle = run(sequence.config, {kTokens, {}, {0, 0, 0, 1, 0, 0, 0}});
    const Values rest = run(sequence.config, {{kTokens.begin() + 3, kTokens.end()}});
    for (int64_t i = 0; i < int64_t{7} * 11; ++i)
      EXPECT_NEAR(again.at("logits").at(i), first.at("logits").at(i), 1e-12) << sequence.name;
    for (int64_t i = 0; i < int64_t{4} * 11; ++i)
      EXPECT_NEAR(middle.at("logits").at(int64_t{3} * 11 + i), rest.at("logits").at(i), 1e-12)
          << sequence.name;
    EXPECT_GT(std::abs(run(sequence.config, {kTokens, first}).at("logits").at(0) -
                       first.at("logits").at(0)),
              1e-6)
        << sequence.name << ": a state that is not reset is of no matter";
  }
}

TEST(HybridBranches, AStateHasItsTensorsInOrder) {
  const HybridConfig config = sequences()[0].config;
  std::vector<std::string> found;
  int64_t elements = 0;
  for (const HybridStateTensor& each : hybrid_state_tensors(config, 3)) {
    found.push_back(each.name + each.type.text());
    EXPECT_EQ(each.type.shape[0], 3);
  }
  EXPECT_EQ(found[0], "layers.0.rwkv.previousf32[3,8]");
  EXPECT_EQ(found[1], "layers.0.rwkv.memoryf32[3,2,4,4]");
  EXPECT_EQ(found[2], "layers.0.mamba.historyf32[3,3,24]");
  EXPECT_EQ(found[3], "layers.0.mamba.memoryf32[3,2,4,8]");
  EXPECT_EQ(found[4], "layers.0.channel_mix.previousf32[3,8]");
  EXPECT_EQ(found.size(), 10U);
  const HybridConfig finch{.vocabulary = 97};
  for (const HybridStateTensor& each : hybrid_state_tensors(finch, 1))
    elements += each.type.elements();
  EXPECT_EQ(elements, 174080);  // 680 KiB
  HybridConfig fixed = finch;
  fixed.branch = HybridBranch::static_decay;
  elements = 0;
  for (const HybridStateTensor& each : hybrid_state_tensors(fixed, 1))
    elements += each.type.elements();
  EXPECT_EQ(elements, 173056);
  EXPECT_THAT(usage_error([&] { hybrid_state(finch, {}); }),
              HasSubstr("a state of 0 tensors, 32 were expected"));
}

TEST(HybridBranches, SizesThatDoNotFitAreNamed) {
  Trace trace("t", false);
  const HybridConfig config = golden_hybrid();
  const Tensor flat = trace.batch("flat", {DType::i32, {3}});
  EXPECT_THAT(usage_error([&] { hybrid(trace, {.tokens = flat}, config); }),
              HasSubstr("hybrid: needs tokens [B,T], got i32[3]"));
  const Tensor tokens = trace.batch("tokens", {DType::i32, {1, 3}});
  HybridState state;
  state.layers.resize(3);
  EXPECT_THAT(usage_error([&] { hybrid(trace, {.tokens = tokens, .state = state}, config); }),
              HasSubstr("a state of 3 layers for a model of 2"));
}

// --- gradients ---------------------------------------------------------------------------------------

// By central differences of the oracle, of every parameter and of the state that a sequence begins with.
TEST(HybridBranches, GradientsAreThoseOfDifferences) {
  for (const SequenceCase& sequence : sequences()) {
    Trace trace("t", true);
    const TensorType type{DType::i32, {1, 5}};
    HybridInputs inputs{.tokens = trace.batch("tokens", type)};
    const Tensor targets = trace.batch("targets", type);
    std::vector<Tensor> state;
    for (const HybridStateTensor& each : hybrid_state_tensors(sequence.config, 1))
      state.push_back(trace.batch(each.name, each.type));
    inputs.state = hybrid_state(sequence.config, state);
    const HybridLoss made = hybrid_loss(trace, inputs, targets, sequence.config);
    trace.result("loss", made.loss.mean);
    const std::vector<Tensor> behind = hybrid_tensors(sequence.config, made.result.state);
    for (size_t i = 0; i < behind.size(); ++i) trace.result(fmt::format("state{}", i), behind[i]);
    const Values values = drawn_parameters(trace);
    GradcheckCase check{.graph = trace.finish(), .inputs = {}, .wanted = {}};
    for (const Graph::Input& input : check.graph.inputs()) {
      const TensorType& of = check.graph.type(input.value);
      const bool floating = of.dtype == DType::f32;
      check.wanted.push_back(floating);
      if (values.contains(input.name))
        check.inputs.push_back(values.at(input.name));
      else if (floating)
        check.inputs.push_back(random_literal(of, 3, check.inputs.size()));
      else
        check.inputs.push_back(integers(DType::i32, of.shape, {1, 7, 3, 10, 7}));
    }
    const GradcheckResult result = gradcheck(check);
    EXPECT_EQ(result.problem, "") << sequence.name;
    EXPECT_FALSE(result.all_zero);
  }
}

// --- what is left out, what is looked at ---------------------------------------------------------------

/// A figure of diagnostics.h by its name, and the loss, of an untrained model.
Values figures(HybridConfig config, HybridAblation ablation = HybridAblation::none) {
  config.ablation = ablation;
  Trace trace("t", false);
  const TensorType type{DType::i32, {2, 7}};
  const Tensor tokens = trace.batch("tokens", type);
  const HybridLoss made = hybrid_loss(trace, {.tokens = tokens}, tokens, config);
  for (const HybridFigure& figure : hybrid_figures(made.result))
    trace.result(figure.name, figure.value);
  trace.result("loss", made.loss.mean);
  Values values = drawn_parameters(trace);
  values["tokens"] =
      integers(DType::i32, type.shape, {0, 6, 3, 2, 3, 6, 0, 10, 9, 1, 10, 9, 1, 10});
  return interpret_by_name(trace.finish(), values);
}

TEST(HybridAblation, RobsTheModelOfABranchOrItsMemory) {
  const HybridConfig config = golden_hybrid();
  const Values whole = figures(config);
  std::vector<double> losses = {whole.at("loss").at(0)};
  for (const HybridAblation each : {HybridAblation::rwkv, HybridAblation::mamba,
                                    HybridAblation::rwkv_state, HybridAblation::mamba_state}) {
    const double loss = figures(config, each).at("loss").at(0);
    for (const double other : losses) EXPECT_NE(loss, other);
    losses.push_back(loss);
  }
  EXPECT_EQ(figures(config, HybridAblation::rwkv).at("layers.1.variance/rwkv").at(0), 0);
  EXPECT_GT(figures(config, HybridAblation::rwkv).at("layers.1.variance/mamba").at(0), 0.1);
  EXPECT_EQ(figures(config, HybridAblation::mamba).at("layers.1.variance/mamba").at(0), 0);
}

TEST(HybridFigures, TellOfBranchesGainsAndGates) {
  HybridConfig config = golden_hybrid();
  Values made = figures(config);
  // Behind a norm whose weights are drawn about 1.
  EXPECT_NEAR(made.at("layers.0.variance/rwkv").at(0), 1, 0.9);
  EXPECT_GT(made.at("layers.0.gain/rwkv").at(0), 0);
  EXPECT_GT(made.at("channel_entropy").at(0), 0);
  EXPECT_LE(made.at("channel_entropy").at(0), std::log(8));
  EXPECT_FALSE(made.contains("layers.0.gate/mean"));
  config.fusion = HybridFusion::channel_gate;
  made = figures(config);
  const auto of = [&](const char* name) {
    return made.at(std::string("layers.0.gate/") + name).at(0);
  };
  EXPECT_LT(of("least"), of("mean"));
  EXPECT_LT(of("mean"), of("most"));
  EXPECT_GT(of("deviation"), 0);
  EXPECT_LE(of("open") + of("shut"), 1);
  config.fusion = HybridFusion::weighted_sum;
  EXPECT_TRUE(figures(config).contains("layers.1.share/rwkv"));
}

}  // namespace
}  // namespace fullbore
