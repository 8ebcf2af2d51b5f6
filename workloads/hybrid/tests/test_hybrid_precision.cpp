#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "fullbore/autodiff/backward.h"
#include "golden_hybrid.h"
#include "tests/support/device.h"
#include "tests/support/evaluate.h"
#include "tests/support/program_check.h"

namespace fullbore {
namespace {

using testing_support::cpu_device;

const std::vector<double> kTokens = {0, 6, 3, 2, 3, 6, 0};
using Values = std::map<std::string, Literal>;

/// Logits of a segment of the golden model by the device, and the states behind it; those before by name.
Values run(HybridBranch branch, const std::vector<double>& tokens, const Values& before,
           DType precision) {
  const HybridConfig model = golden_hybrid(branch);
  Trace trace("t", false);
  const TensorType type{DType::i32, {1, static_cast<int64_t>(tokens.size())}};
  const Tensor x = trace.batch("tokens", type);
  std::vector<Tensor> state;
  const std::vector<HybridStateTensor> tensors = hybrid_state_tensors(model, 1);
  for (const HybridStateTensor& each : tensors) state.push_back(trace.batch(each.name, each.type));
  const HybridResult made =
      hybrid(trace, {.tokens = x, .state = hybrid_state(model, state)}, model);
  trace.result("logits", language_model_logits(trace, made.head));
  const std::vector<Tensor> behind = hybrid_tensors(model, made.state);
  for (size_t i = 0; i < behind.size(); ++i) trace.result(tensors[i].name, behind[i]);
  Values given = golden_parameters(trace, model);
  given["tokens"] = integers(DType::i32, type.shape, tokens);
  for (const auto& [name, literal] : before)
    if (name != "logits") given[name] = literal;
  const Graph graph = trace.finish();
  std::vector<Literal> inputs;
  for (const Graph::Input& input : graph.inputs())
    inputs.push_back(given.contains(input.name) ? given.at(input.name)
                                                : Literal(graph.type(input.value)));
  const std::shared_ptr<Device> device = cpu_device(2);
  const std::vector<Literal> results =
      testing_support::run_graph(graph, inputs, device, {.precision = precision});
  Values found;
  for (size_t i = 0; i < results.size(); ++i) found[graph.outputs()[i].name] = results[i];
  return found;
}

/// The largest difference of logits when the same tokens come in segments of these lengths, by the root mean square of
/// them all.
double difference(HybridBranch branch, const std::vector<size_t>& lengths, DType precision) {
  const Literal whole = run(branch, kTokens, {}, precision).at("logits");
  double most = 0, squares = 0;
  for (const double x : whole.reals()) squares += x * x;
  Values behind;
  size_t at = 0;
  int64_t logit = 0;
  for (const size_t length : lengths) {
    const auto first = kTokens.begin() + static_cast<std::ptrdiff_t>(at);
    behind = run(branch, {first, first + static_cast<std::ptrdiff_t>(length)}, behind, precision);
    at += length;
    for (const double x : behind.at("logits").reals())
      most = std::max(most, std::abs(x - whole.at(logit++)));
  }
  return most / std::sqrt(squares / static_cast<double>(whole.elements()));
}

TEST(HybridPrecision, SegmentsAreTheWholeAsFarAsRoundingGoes) {
  for (const HybridBranch branch : {HybridBranch::finch, HybridBranch::static_decay})
    for (const std::vector<size_t>& lengths :
         {std::vector<size_t>{4, 3}, std::vector<size_t>{1, 1, 1, 1, 1, 1, 1}}) {
      EXPECT_LE(difference(branch, lengths, DType::f32), 1e-5);
      EXPECT_LE(difference(branch, lengths, DType::bf16), 3e-2);
    }
}

TEST(HybridPrecision, LowPrecisionRounds) {
  const Literal single = run(HybridBranch::finch, kTokens, {}, DType::f32).at("logits");
  const Literal low = run(HybridBranch::finch, kTokens, {}, DType::bf16).at("logits");
  double most = 0;
  for (int64_t i = 0; i < single.elements(); ++i)
    most = std::max(most, std::abs(single.at(i) - low.at(i)));
  EXPECT_GT(most, 1e-4);
}

// Every node of the model and its gradient, on the device's own operands.
TEST(HybridPrecision, EveryNodeIsWhatItsReferenceSays) {
  for (const HybridBranch branch :
       {HybridBranch::finch, HybridBranch::static_decay, HybridBranch::channel_softmax}) {
    HybridConfig model = golden_hybrid(branch);
    model.channel_mix = branch == HybridBranch::static_decay;
    Trace trace("t", true);
    const TensorType type{DType::i32, {2, 7}};
    const Tensor tokens = trace.batch("tokens", type), targets = trace.batch("targets", type);
    const Tensor resets = trace.batch("resets", {DType::boolean, {2, 7}});
    const HybridLoss made =
        hybrid_loss(trace, {.tokens = tokens, .resets = resets}, targets, model);
    std::vector<Tensor> parameters;
    for (const Trace::Parameter& each : trace.parameters()) parameters.push_back(each.tensor);
    const std::vector<Tensor> gradients = gradient(made.loss.mean, parameters);
    for (size_t i = 0; i < gradients.size(); ++i)
      trace.result("d " + trace.parameters()[i].name, gradients[i]);
    Values given = drawn_parameters(trace);
    std::vector<double> x, y, r;
    for (int t = 0; t < 14; ++t) {
      x.push_back((5 * t + t * t) % 11);
      y.push_back((3 * t + 1) % 11);
      r.push_back(t == 4 || t == 9);
    }
    given["tokens"] = integers(DType::i32, type.shape, x);
    given["targets"] = integers(DType::i32, type.shape, y);
    given["resets"] = integers(DType::boolean, type.shape, r);
    const Graph graph = trace.finish();
    std::vector<Literal> inputs;
    for (const Graph::Input& input : graph.inputs()) inputs.push_back(given.at(input.name));
    const std::shared_ptr<Device> device = cpu_device(2);
    EXPECT_EQ(testing_support::check_against_oracle(graph, inputs, device, {}), "");
  }
}

}  // namespace
}  // namespace fullbore
