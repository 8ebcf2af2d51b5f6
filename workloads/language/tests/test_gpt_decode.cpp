// The program that continues texts from caches against the whole forward pass.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "fullbore/base/philox.h"
#include "fullbore/device/device.h"
#include "fullbore/device/interpret.h"
#include "fullbore/ir/op_def.h"
#include "fullbore/passes/pass.h"
#include "fullbore/train/generator.h"
#include "tests/support/device.h"
#include "tests/support/interpret_by_name.h"
#include "tests/support/program_check.h"
#include "workloads/language/models.h"

namespace fullbore {
namespace {

using testing_support::cpu_device;
using testing_support::Edited;

using Literals = std::map<std::string, Literal>;

constexpr int64_t kContext = 13;  // no multiple of the chunk
constexpr int64_t kChunk = 4;
constexpr int64_t kVocabulary = 11;
const std::vector<int32_t> kText = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 10};

enum class Kind : uint8_t { plain, biased, rms_rotary };

LanguageModelConfig config_of(Kind kind) {
  const bool bias = kind == Kind::biased, modern = kind == Kind::rms_rotary;
  return {.vocabulary = kVocabulary,
          .layers = 2,
          .heads = 2,
          .width = 16,
          .context = kContext,
          .bias = bias,
          .tie_head = bias,
          .tanh_gelu = bias,
          .rms_norm = modern,
          .rotary = modern};
}

DecodeFunction decode_of(const LanguageModelConfig& config) {
  return [config](Trace& trace, Tensor tokens, Tensor position, Tensor row, int64_t capacity) {
    return gpt_decode(trace, {tokens, position, row, capacity}, config);
  };
}

Graph whole_pass(const LanguageModelConfig& config) {
  Trace trace("whole", false);
  trace.result("logits", gpt(trace, trace.batch("tokens", {DType::i32, {1, kContext}}), config));
  return trace.finish();
}

// Every parameter of the model with values that f32 holds, spread so that logits differ clearly.
Literals parameters_of(const Graph& graph) {
  Literals result;
  for (const Graph::Input& input : graph.inputs()) {
    if (input.role != Role::parameter) continue;
    PhiloxStream draws(17, result.size());
    Literal values(graph.type(input.value));
    for (int64_t i = 0; i < values.elements(); ++i) values.put(i, 0.4 * draws.normal());
    values.round();
    result[input.name] = values;
  }
  return result;
}

Literal tokens_of(const std::vector<int32_t>& tokens) {
  Literal result({DType::i32, {1, static_cast<int64_t>(tokens.size())}});
  for (size_t i = 0; i < tokens.size(); ++i) result.integers()[i] = tokens[i];
  return result;
}

// Logits [kContext, V] of the whole pass, in double precision.
Literal exact_logits(const LanguageModelConfig& config) {
  const Graph graph = whole_pass(config);
  Literals inputs = parameters_of(graph);
  inputs["tokens"] = tokens_of(kText);
  return interpret_by_name(graph, inputs).at("logits");
}

// The decode program in double precision: appends tokens to a text and tells what follows.
class Decoder {
 public:
  Decoder(const LanguageModelConfig& config, int64_t length)
      : graph_(Generator::trace(decode_of(config), {1, kContext, 0, kChunk}, length)),
        length_(length),
        state_(parameters_of(graph_)) {}

  Literal append(std::vector<int32_t> tokens) {
    const auto used = static_cast<int64_t>(tokens.size());
    tokens.resize(static_cast<size_t>(length_), 7);  // padding that would be noticed
    Literals inputs = state_;
    inputs["tokens"] = tokens_of(tokens);
    inputs["position"] = Literal::scalar(DType::i64, static_cast<double>(position_));
    inputs["row"] = Literal::scalar(DType::i64, static_cast<double>(used - 1));
    const Literals outputs = interpret_by_name(graph_, inputs);
    for (const Graph::Output& output : graph_.outputs())
      if (output.updates >= 0) state_[output.name] = outputs.at(output.name);
    position_ += used;
    return outputs.at("logits");
  }

 private:
  Graph graph_;
  int64_t length_;
  Literals state_;
  int64_t position_ = 0;
};

void expect_row(const Literal& found, const Literal& whole, size_t row, double bound) {
  for (int64_t v = 0; v < kVocabulary; ++v)
    ASSERT_NEAR(found.at(v), whole.at(static_cast<int64_t>(row) * kVocabulary + v), bound)
        << "after " << row + 1 << " tokens, logit " << v;
}

class GptDecode : public testing::TestWithParam<Kind> {
 protected:
  const LanguageModelConfig config_ = config_of(GetParam());
};

// In exact arithmetic the two are equal; in double precision to its rounding.
TEST_P(GptDecode, TokenByTokenEqualsTheWholePass) {
  const Literal whole = exact_logits(config_);
  Decoder decoder(config_, 1);
  for (size_t i = 0; i < kText.size(); ++i) expect_row(decoder.append({kText[i]}), whole, i, 1e-12);
}

TEST_P(GptDecode, ChunksOfEveryPrefixEqualTheWholePass) {
  const Literal whole = exact_logits(config_);
  for (size_t length = 1; length <= kText.size(); ++length) {
    Decoder decoder(config_, kChunk);
    Literal logits;
    for (size_t at = 0; at < length; at += kChunk)
      logits = decoder.append(
          {kText.begin() + static_cast<std::ptrdiff_t>(at),
           kText.begin() + static_cast<std::ptrdiff_t>(std::min<size_t>(at + kChunk, length))});
    expect_row(logits, whole, length - 1, 1e-12);
  }
}

// --- f32 -----------------------------------------------------------------------------------------
// The whole pass as primitives, each result disturbed by as much as the bound of its op in f32 allows
// (op_def.h), with random signs: how far rounding may move the logits (Parker 1997, "Monte Carlo
// arithmetic"). Returns the largest deviation seen from the undisturbed logits.
double rounding_of_logits(const LanguageModelConfig& config) {
  PassOptions primitives_only;
  for (const Pass& pass : pipeline())
    if (pass.optional) primitives_only.disabled.insert(std::string(pass.name));
  const Graph graph = run_passes(whole_pass(config), cpu_device(2)->target(), primitives_only);
  const Literals parameters = parameters_of(graph);
  const double epsilon = dtype_epsilon(DType::f32);
  const auto evaluate = [&](PhiloxStream* draws) {
    std::vector<Literal> values(static_cast<size_t>(graph.value_count()));
    for (const Graph::Input& input : graph.inputs())
      values[static_cast<size_t>(input.value.id)] =
          input.role == Role::batch ? tokens_of(kText) : parameters.at(input.name);
    for (const Node& node : graph.nodes()) {
      std::vector<const Literal*> operands;
      for (const Value input : node.inputs)
        operands.push_back(&values[static_cast<size_t>(input.id)]);
      std::vector<TensorType> types;
      for (const Value output : node.outputs) types.push_back(graph.type(output));
      std::vector<std::vector<double>> magnitudes;
      std::vector<Literal> results = interpret_node(node, types, operands, &magnitudes);
      const double ulps = node.op->is(Tag::elementwise) ? scalar_op_ulps(node.op->scalar) : 1;
      for (size_t o = 0; o < results.size(); ++o) {
        const bool rounds = results[o].floating() && !node.op->is(Tag::movement);
        for (int64_t i = 0; draws != nullptr && rounds && i < results[o].elements(); ++i) {
          double bound = (ulps + 0.5) * epsilon * std::abs(results[o].at(i));
          if (o < magnitudes.size() && !magnitudes[o].empty())
            bound += epsilon * magnitudes[o][static_cast<size_t>(i)];
          if (std::isfinite(bound))
            results[o].put(i, results[o].at(i) + (draws->below(2) == 0 ? bound : -bound));
        }
        values[static_cast<size_t>(node.outputs[o].id)] = std::move(results[o]);
      }
    }
    return values[static_cast<size_t>(graph.outputs()[0].value.id)];
  };
  const Literal exact = evaluate(nullptr);
  PhiloxStream draws(5);
  double largest = 0;
  for (int repeat = 0; repeat < 8; ++repeat) {
    const Literal disturbed = evaluate(&draws);
    for (int64_t i = 0; i < exact.elements(); ++i)
      largest = std::max(largest, std::abs(disturbed.at(i) - exact.at(i)));
  }
  return largest;
}

// A Generator on the cpu device, with the model's parameters.
class Compiled {
 public:
  Compiled(const LanguageModelConfig& config, int64_t samples)
      : sizes_{samples, kContext, 0, kChunk},
        state_(state_entries(Generator::trace(decode_of(config), sizes_, 1)), cpu_device(2)),
        generator_(decode_of(config), sizes_, state_, {}) {
    for (const auto& [name, values] :
         parameters_of(Generator::trace(decode_of(config), sizes_, 1))) {
      Edited<float> place(state_, name);
      for (size_t i = 0; i < place.size(); ++i)
        place[i] = static_cast<float>(values.at(static_cast<int64_t>(i)));
    }
  }
  Generator& operator*() { return generator_; }
  Literal logits(int64_t sample) const {
    const std::span<const float> row = generator_.logits(sample);
    return Literal::of({DType::f32, {kVocabulary}}, {row.begin(), row.end()});
  }

 private:
  GeneratorSizes sizes_;
  State state_;
  Generator generator_;
};

TEST_P(GptDecode, CpuLogitsOfEveryPrefixAreWithinTheRoundingOfTheWholePass) {
  const Literal whole = exact_logits(config_);
  // Twice the largest of 8 random disturbances; the error of one evaluation is another such.
  const double bound = 2 * rounding_of_logits(config_);
  EXPECT_LT(bound, 1e-3) << "a bound that says nothing: logits differ by ones";
  Compiled compiled(config_, 2);
  for (size_t length = 1; length <= kText.size(); ++length) {
    (*compiled).begin(std::span(kText).first(length));
    for (const int64_t sample : {0, 1})
      expect_row(compiled.logits(sample), whole, length - 1, bound);
  }
  (*compiled).begin(std::span(kText).first(1));
  for (size_t i = 1; i < kText.size(); ++i) {
    const int32_t both[] = {kText[i], kText[i]};
    (*compiled).append(both);
    for (const int64_t sample : {0, 1}) expect_row(compiled.logits(sample), whole, i, bound);
  }
}

// Every node of both decode programs, on the device's own operands.
TEST_P(GptDecode, CpuProgramsMeetTheBoundsOfTheirOps) {
  const std::shared_ptr<Device> device = cpu_device(2);
  for (const int64_t length : {int64_t{1}, kChunk}) {
    const Graph graph = Generator::trace(decode_of(config_), {2, kContext, 0, kChunk}, length);
    const Literals parameters = parameters_of(graph);
    std::vector<Literal> inputs;
    for (const Graph::Input& input : graph.inputs()) {
      PhiloxStream draws(3, inputs.size());
      Literal values(graph.type(input.value));
      for (int64_t i = 0; i < values.elements(); ++i)
        values.put(i, values.floating() ? draws.normal() : static_cast<double>(draws.below(9)));
      if (input.name == "position") values.put(0, 8);
      if (input.name == "row") values.put(0, static_cast<double>(length - 1));
      const auto known = parameters.find(input.name);
      inputs.push_back(known == parameters.end() ? values : known->second);
    }
    EXPECT_EQ(testing_support::check_against_oracle(graph, inputs, device, {}), "") << length;
  }
}

// Beyond the context the newest half of it begins anew.
TEST_P(GptDecode, BeyondTheContextIsAFreshStartOnItsLastHalf) {
  Compiled going_on(config_, 1);
  Compiled fresh(config_, 1);
  (*going_on).begin(kText);
  const int32_t next[] = {7};
  (*going_on).append(next);
  std::vector<int32_t> last(kText.end() - (kContext / 2 - 1), kText.end());
  last.push_back(7);
  (*fresh).begin(last);
  EXPECT_EQ(going_on.logits(0).bytes(), fresh.logits(0).bytes());
  (*going_on).append(next);
  (*fresh).append(next);
  EXPECT_EQ(going_on.logits(0).bytes(), fresh.logits(0).bytes());
}

INSTANTIATE_TEST_SUITE_P(Kinds, GptDecode,
                         testing::Values(Kind::plain, Kind::biased, Kind::rms_rotary));

}  // namespace
}  // namespace fullbore
