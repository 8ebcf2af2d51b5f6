#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "fullbore/autodiff/backward.h"
#include "golden_hybrid.h"
#include "tests/support/evaluate.h"
#include "tests/support/interpret_by_name.h"

namespace fullbore {
namespace {

// --- sizes -------------------------------------------------------------------------------------------

/// Parameters of the model, or of those whose names have the part.
int64_t parameters_of(const HybridConfig& config, const char* part = "") {
  Trace trace("t", true);
  hybrid(trace, {.tokens = trace.batch("tokens", {DType::i32, {1, 3}})}, config);
  return parameter_count(trace, part);
}

TEST(HybridModel, HasAsManyParametersAsRecorded) {
  struct Row {
    HybridFusion fusion;
    int64_t in_a_layer, static_decay, finch;
  };
  for (const Row& row : {Row{HybridFusion::gains, 512, 3585376, 3130720},
                         Row{HybridFusion::gate, 257, 3583336, 3128680},
                         Row{HybridFusion::projection, 32768, 3843424, 3388768},
                         Row{HybridFusion::weighted_sum, 1, 3581288, 3126632},
                         Row{HybridFusion::residual, 16384, 3712352, 3257696},
                         Row{HybridFusion::channel_gate, 32896, 3844448, 3389792}}) {
    const auto number = static_cast<int>(row.fusion);
    EXPECT_EQ(parameters_of({.fusion = row.fusion, .vocabulary = 97}), row.finch) << number;
    const HybridConfig other{
        .branch = HybridBranch::static_decay, .fusion = row.fusion, .vocabulary = 97};
    EXPECT_EQ(parameters_of(other), row.static_decay) << number;
    const int64_t all = parameters_of(other, "layers.3."),
                  branches = parameters_of(other, "layers.3.rwkv.") +
                             parameters_of(other, "layers.3.mamba.");
    EXPECT_EQ(all - branches - int64_t{2} * 128 - 131072, row.in_a_layer) << number;
  }
  const HybridConfig recorded{.branch = HybridBranch::static_decay, .vocabulary = 97};
  EXPECT_EQ(parameters_of(recorded) - parameters_of(recorded, "embed"), 3572960);
  const HybridConfig gated{.branch = HybridBranch::static_decay, .fusion = HybridFusion::gate};
  HybridConfig larger = gated;
  larger.vocabulary = 10000;
  EXPECT_EQ(parameters_of(larger), 4850920);
  larger.vocabulary = 16000;
  EXPECT_EQ(parameters_of(larger), 5618920);
  HybridConfig wider = gated;
  wider.vocabulary = 97;
  wider.width = 192;
  wider.heads = wider.mamba_heads = 6;
  wider.inner = 384;
  wider.hidden = 768;
  EXPECT_EQ(parameters_of(wider), 7931416);
  HybridConfig smaller = recorded;
  smaller.layers = 4;
  smaller.width = 64;
  smaller.heads = smaller.mamba_heads = 2;
  smaller.inner = 128;
  smaller.hidden = 256;
  EXPECT_EQ(parameters_of(smaller), 474264);
}

TEST(HybridModel, DividesItsParametersAsRecorded) {
  const HybridConfig finch{.vocabulary = 97};
  HybridConfig fixed = finch;
  fixed.branch = HybridBranch::static_decay;
  EXPECT_EQ(parameters_of(finch, "layers.3.rwkv."), 140544);
  EXPECT_EQ(parameters_of(fixed, "layers.3.rwkv."), 197376);
  EXPECT_EQ(parameters_of(finch, "layers.3.mamba."), 117388);
  EXPECT_EQ(parameters_of(finch, "layers.3.mamba.input"), 82432);
  EXPECT_EQ(parameters_of(finch, "layers.3.mamba.convolution"), 1920);
  EXPECT_EQ(parameters_of(finch, "layers.3.mamba.output"), 32768);
  EXPECT_EQ(parameters_of(finch, "layers.3.mamba.norm"), 256);
  for (const char* each : {"step_bias", "decay", "skip"})
    EXPECT_EQ(parameters_of(finch, (std::string("layers.3.mamba.") + each).c_str()), 4);
  EXPECT_EQ(parameters_of(finch, "layers.3.rwkv.mix"), 768 + 40960);
  EXPECT_EQ(parameters_of(finch, "layers.3.rwkv.decay"), 128 + 16384);
  EXPECT_EQ(parameters_of(finch, "layers.3.rwkv.bonus"), 128);
  EXPECT_EQ(parameters_of(finch, "layers.3.rwkv.norm"), 256);
  // What the optimiser tells apart.
  const int64_t rwkv = parameters_of(fixed, ".rwkv"), mamba = parameters_of(fixed, ".mamba");
  EXPECT_EQ(rwkv, 1581056);
  EXPECT_EQ(mamba, 941152);
  EXPECT_EQ(parameters_of(fixed) - rwkv - mamba, 1063168);
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
  explicit Golden(HybridBranch branch) {
    const HybridConfig model = golden_hybrid(branch);
    Trace trace("t", true);
    const TensorType type{DType::i32, {2, 7}};
    const Tensor tokens = trace.batch("tokens", type), targets = trace.batch("targets", type);
    const HybridLoss made = hybrid_loss(trace, {.tokens = tokens}, targets, model);
    const Tensor loss = made.loss.mean;
    trace.result("loss", loss);
    trace.result("logits", language_model_logits(trace, made.result.head));
    for (size_t layer = 0; layer < 2; ++layer) {
      const HybridLayerState& state = made.result.state.layers[layer];
      trace.result(fmt::format("S{}", layer), state.time_mix.memory);
      trace.result(fmt::format("h{}", layer), state.mamba.memory);
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

TEST(HybridModel, IsTheGoldenOneOfRwkv6) {
  const Golden golden(HybridBranch::finch);
  EXPECT_EQ(golden.parameters(), 3644);
  EXPECT_NEAR(golden["loss"].at(0), 3.239679747, kNear);
  EXPECT_NEAR(norm(golden["logits"]), 14.0038029, 1e-5);
  const double first[] = {0.1918497, -0.5499008, -1.0448183, -1.0707501};
  const double last[] = {-0.3551260, 0.2471596, 0.7385031, 0.8983560};
  for (int64_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(golden["logits"].at(i), first[i], kNear);
    EXPECT_NEAR(golden["logits"].at(int64_t{13} * 11 + i), last[i], kNear);
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

TEST(HybridModel, IsTheGoldenOneOfStaticDecays) {
  const Golden golden(HybridBranch::static_decay);
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

// --- sequences -----------------------------------------------------------------------------------------

using States = std::map<std::string, Literal>;

/// Logits of a segment of the golden model, and the states behind it by name; those before by the same.
std::map<std::string, Literal> run_segment(const std::vector<double>& tokens,
                                           const States& before) {
  const HybridConfig model = golden_hybrid();
  const auto count = static_cast<int64_t>(tokens.size());
  Trace trace("t", false);
  const Tensor x = trace.batch("tokens", {DType::i32, {1, count}});
  std::vector<Tensor> state;
  for (const HybridStateTensor& each : hybrid_state_tensors(model, 1))
    state.push_back(trace.batch(each.name, each.type));
  const HybridResult made =
      hybrid(trace, {.tokens = x, .state = hybrid_state(model, state)}, model);
  trace.result("logits", language_model_logits(trace, made.head));
  const std::vector<Tensor> behind = hybrid_tensors(model, made.state);
  for (size_t i = 0; i < behind.size(); ++i)
    trace.result(hybrid_state_tensors(model, 1)[i].name, behind[i]);
  std::map<std::string, Literal> inputs = golden_parameters(trace, model);
  inputs["tokens"] = integers(DType::i32, {1, count}, tokens);
  for (const auto& [name, literal] : before) inputs[name] = literal;
  return interpret_by_name(trace.finish(), inputs);
}

/// The largest difference of logits when the same tokens come in segments of these lengths; a state whose
/// name has `forgotten` in it is not handed on.
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
      if (forgotten.empty() || name.find(forgotten) == std::string::npos) states[name] = literal;
  }
  return most;
}

TEST(HybridModel, GoesOnFromItsState) {
  EXPECT_LE(difference({4, 3}, ""), 1e-12);
  EXPECT_LE(difference({1, 1, 1, 1, 1, 1, 1}, ""), 1e-12);
  for (const char* forgotten : {"previous", "rwkv.memory", "history", "0.mamba.memory"})
    EXPECT_GT(difference({4, 3}, forgotten), 1e-4) << forgotten;
}

}  // namespace
}  // namespace fullbore
