// Texts to surfaces and back, in double precision.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "fullbore/base/philox.h"
#include "fullbore/ir/op_def.h"
#include "fullbore/train/step_function.h"
#include "tests/support/evaluate.h"
#include "tests/support/interpret_by_name.h"
#include "workloads/energy_flow/energy_job.h"
#include "workloads/energy_flow/energy_keys.h"
#include "workloads/energy_flow/text_losses.h"

namespace fullbore::energy_flow {
namespace {

using Literals = std::map<std::string, Literal>;

constexpr int64_t kVocabulary = 9, kCells = 12, kMemory = 6, kRows = 3;

// Values that f32 holds, for every parameter.
Literals parameters_of(const Graph& graph) {
  Literals result;
  for (const Graph::Input& input : graph.inputs()) {
    if (input.role != Role::parameter && input.role != Role::frozen) continue;
    PhiloxStream draws(11, result.size());
    Literal values(graph.type(input.value));
    for (int64_t i = 0; i < values.elements(); ++i) values.put(i, 0.4 * draws.normal());
    values.round();
    result[input.name] = values;
  }
  return result;
}

int64_t elements_of(const Graph& graph, const std::string& part) {
  int64_t count = 0;
  for (const Graph::Input& input : graph.inputs())
    if (input.role == Role::parameter && input.name.starts_with(part + "."))
      count += graph.type(input.value).elements();
  return count;
}

// A14, of section 2.11 of the specification.
TEST(TextBridge, HasTheParametersOfItsSpecification) {
  struct Sizes {
    int64_t cells, encoder, adapter;
  };
  for (const Sizes& sizes :
       {Sizes{400, 9'168'016, 184'536}, Sizes{2500, 9'707'716, 3'770'286},
        Sizes{784, 9'266'704, 510'744}, Sizes{10000, 11'635'216, 52'576'536}}) {
    Trace trace("sizes", false);
    const Tensor tokens = trace.batch("tokens", {DType::i32, {1, 128}});
    const Tensor surface = encode_to_surface(
        trace, tokens, {.vocabulary = 30522, .padding = 0, .outputs = sizes.cells});
    trace.result("memory", adapt_surface(trace, surface, {.surface = sizes.cells}));
    const Graph graph = trace.finish();
    EXPECT_EQ(elements_of(graph, "encoder"), sizes.encoder);
    EXPECT_EQ(elements_of(graph, "adapter"), sizes.adapter);
  }
}

// What an encoder makes of rows of tokens.
std::vector<double> encoded(bool dilated, int64_t length, const std::vector<double>& tokens) {
  Trace trace("encode", false);
  const int64_t batch = std::ssize(tokens) / length;
  const Tensor given = trace.batch("tokens", {DType::i32, {batch, length}});
  const EncoderSizes sizes{.vocabulary = kVocabulary,
                           .padding = 0,
                           .width = 8,
                           .layers = 2,
                           .heads = 2,
                           .hidden = 10,
                           .outputs = kCells};
  trace.result("result", dilated ? encode_to_embedding(trace, given, sizes)
                                 : encode_to_surface(trace, given, sizes));
  const Graph graph = trace.finish();
  Literals inputs = parameters_of(graph);
  inputs["tokens"] = integers(DType::i32, {batch, length}, tokens);
  return elements(interpret_by_name(graph, inputs).at("result"));
}

TEST(TextBridge, EncodersAreBlindToPaddingAndToOtherTexts) {
  for (const bool dilated : {false, true}) {
    const std::vector<double> alone = encoded(dilated, 3, {4, 7, 5});
    const std::vector<double> padded = encoded(dilated, 6, {8, 1, 2, 3, 4, 5, 4, 7, 5, 0, 0, 0});
    for (int64_t i = 0; i < kCells; ++i)
      EXPECT_NEAR(alone[static_cast<size_t>(i)], padded[static_cast<size_t>(kCells + i)], 1e-12);
    // And see the order of words.
    const std::vector<double> turned = encoded(dilated, 3, {7, 4, 5});
    double difference = 0;
    for (size_t i = 0; i < turned.size(); ++i) difference += std::abs(turned[i] - alone[i]);
    EXPECT_GT(difference, 1e-3);
  }
}

// Bai, Kolter, Koltun 2018, section 3, said a place at a time.
TEST(TextBridge, DilatedConvolutionsAreThoseOfTheirPaper) {
  constexpr int64_t kLength = 7;
  const std::vector<double> tokens = {4, 7, 5, 1, 3, 3, 8};
  Trace trace("encode", false);
  const Tensor given = trace.batch("tokens", {DType::i32, {1, kLength}});
  trace.result("result", encode_to_embedding(
                             trace, given,
                             {.vocabulary = kVocabulary, .width = 3, .hidden = 4, .outputs = 5}));
  const Graph graph = trace.finish();
  Literals inputs = parameters_of(graph);
  const auto weight = [&](const std::string& name) {
    return elements(inputs.at("encoder." + name));
  };
  inputs["tokens"] = integers(DType::i32, {1, kLength}, tokens);
  const std::vector<double> found = elements(interpret_by_name(graph, inputs).at("result"));

  using Sequence = std::vector<std::vector<double>>;  // [T][C]
  const auto convolve = [&](const Sequence& x, const std::string& name, size_t dilation) {
    const std::vector<double> v = weight(name + ".direction"), g = weight(name + ".gain"),
                              b = weight(name + ".bias");
    const size_t outputs = g.size(), channels = x[0].size(), taps = 5;
    Sequence y(x.size(), std::vector<double>(outputs));
    for (size_t o = 0; o < outputs; ++o) {
      const double* row = v.data() + o * taps * channels;
      double squares = 0;
      for (size_t i = 0; i < taps * channels; ++i) squares += row[i] * row[i];
      for (size_t t = 0; t < x.size(); ++t) {
        double sum = b[o];
        for (size_t k = 0; k < taps; ++k) {
          const size_t back = (taps - 1 - k) * dilation;
          if (back > t) continue;
          for (size_t c = 0; c < channels; ++c)
            sum += g[o] / std::sqrt(squares) * row[k * channels + c] * x[t - back][c];
        }
        y[t][o] = std::max(sum, 0.0);
      }
    }
    return y;
  };
  Sequence x;
  const std::vector<double> table = weight("tokens.weight");
  for (const double token : tokens) {
    const auto row = table.begin() + static_cast<std::ptrdiff_t>(3 * token);
    x.emplace_back(row, row + 3);
  }
  size_t dilation = 1;
  for (int block = 0; block < 4; ++block, dilation *= 2) {
    const std::string name = "blocks." + std::to_string(block) + ".";
    const Sequence y = convolve(convolve(x, name + "first", dilation), name + "second", dilation);
    Sequence next = y;
    for (size_t t = 0; t < x.size(); ++t)
      for (size_t o = 0; o < y[t].size(); ++o) {
        double shortcut = block > 0 ? x[t][o] : weight(name + "shortcut.bias")[o];
        if (block == 0)
          for (size_t c = 0; c < 3; ++c)
            shortcut += weight(name + "shortcut.weight")[o * 3 + c] * x[t][c];
        next[t][o] = std::max(shortcut + y[t][o], 0.0);
      }
    x = next;
  }
  const std::vector<double> projection = weight("embedding.weight"),
                            bias = weight("embedding.bias");
  for (size_t o = 0; o < 5; ++o) {
    double sum = bias[o];
    for (size_t t = 0; t < x.size(); ++t)
      for (size_t c = 0; c < 4; ++c) sum += projection[o * 4 + c] * x[t][c] / kLength;
    EXPECT_NEAR(found[o], sum, 1e-10);
  }
}

TEST(TextBridge, TeachersTellTheEndOnceAndNothingOfPadding) {
  const Literal tokens = integers(DType::i32, {3, 4}, {5, 6, 0, 0, 7, 0, 0, 0, 5, 6, 7, 8});
  const std::vector<Literal> found =
      evaluate_all({tokens}, [](GraphBuilder&, const std::vector<Tensor>& given) {
        const TeacherForcing forced = teacher_forcing(given[0], 0, 2, 3);
        return std::vector<Tensor>{forced.inputs, forced.targets};
      });
  EXPECT_EQ(elements(found[0]), (std::vector<double>{2, 5, 6, 0, 2, 7, 0, 0, 2, 5, 6, 7}));
  EXPECT_EQ(elements(found[1]), (std::vector<double>{5, 6, 3, -1, 7, 3, -1, -1, 5, 6, 7, 8}));
}

constexpr int64_t kLength = 5;
constexpr DecoderSizes kDecoder{.vocabulary = kVocabulary,
                                .surface = kCells,
                                .memory = kMemory,
                                .width = 8,
                                .layers = 2,
                                .heads = 2,
                                .hidden = 10};

Literal f32_rows(const std::vector<double>& values) {
  Literal result({DType::f32, {kRows, kMemory}});
  for (size_t i = 0; i < values.size(); ++i) result.put(static_cast<int64_t>(i), values[i]);
  return result;
}

std::vector<double> memory_values() {
  std::vector<double> values;
  for (int64_t i = 0; i < kRows * kMemory; ++i) values.push_back(std::sin(static_cast<double>(i)));
  return values;
}

// Logits [kRows, kLength, V] of texts that are known.
std::vector<double> known_logits(const std::vector<double>& tokens) {
  Trace trace("known", false);
  const Tensor memory = trace.batch("memory", {DType::f32, {kRows, kMemory}});
  const Tensor given = trace.batch("tokens", {DType::i32, {kRows, kLength}});
  trace.result("logits",
               language_model_logits(trace, decode_texts(trace, memory, given, kDecoder)));
  const Graph graph = trace.finish();
  Literals inputs = parameters_of(graph);
  inputs["memory"] = f32_rows(memory_values());
  inputs["tokens"] = integers(DType::i32, {kRows, kLength}, tokens);
  return elements(interpret_by_name(graph, inputs).at("logits"));
}

// A token at a time, rows changing places on the way as a search of beams has it.
TEST(TextBridge, WritesByCacheWhatItWouldOfWholeTexts) {
  Trace trace("step", false);
  const Tensor memory = trace.batch("memory", {DType::f32, {kRows, kMemory}});
  const WritingStep step{trace.batch("tokens", {DType::i32, {kRows}}),
                         trace.batch("rows", {DType::i32, {kRows}}),
                         trace.batch("position", {DType::i64, {}}), kLength};
  trace.result("logits", decode_step(trace, memory, step, kDecoder));
  const Graph graph = trace.finish();
  Literals inputs = parameters_of(graph);
  // All rows go on from row 1 in the third step, so all share one memory.
  std::vector<double> same = memory_values();
  for (size_t i = kMemory; i < same.size(); ++i) same[i] = same[i - kMemory];
  inputs["memory"] = f32_rows(same);
  for (const Graph::Input& input : graph.inputs())
    if (input.role == Role::recurrent) inputs[input.name] = Literal(graph.type(input.value));
  const std::vector<std::vector<double>> tokens = {
      {2, 2, 2}, {4, 5, 6}, {7, 8, 4}, {5, 6, 7}, {8, 4, 5}};
  const std::vector<std::vector<double>> rows = {
      {0, 1, 2}, {0, 1, 2}, {1, 1, 1}, {2, 0, 1}, {0, 1, 2}};
  std::vector<std::vector<double>> written(kRows);
  std::vector<std::vector<double>> logits(kRows);  // of the text that a row holds
  for (size_t t = 0; t < tokens.size(); ++t) {
    inputs["tokens"] = integers(DType::i32, {kRows}, tokens[t]);
    inputs["rows"] = integers(DType::i32, {kRows}, rows[t]);
    inputs["position"] = integers(DType::i64, {}, {static_cast<double>(t)});
    const Literals results = interpret_by_name(graph, inputs);
    for (const auto& [name, value] : results)
      if (inputs.contains(name)) inputs[name] = value;
    const std::vector<double> all = elements(results.at("logits"));
    std::vector<std::vector<double>> next(kRows), next_logits(kRows);
    for (size_t row = 0; row < kRows; ++row) {
      next[row] = written[static_cast<size_t>(rows[t][row])];
      next[row].push_back(tokens[t][row]);
      next_logits[row] = logits[static_cast<size_t>(rows[t][row])];
      next_logits[row].insert(next_logits[row].end(),
                              all.begin() + static_cast<std::ptrdiff_t>(row * kVocabulary),
                              all.begin() + static_cast<std::ptrdiff_t>((row + 1) * kVocabulary));
    }
    written = next;
    logits = next_logits;
  }
  // known_logits() has another memory in each row: the first alone is compared, for each text in turn.
  for (size_t row = 0; row < kRows; ++row) {
    std::vector<double> texts;
    for (int64_t i = 0; i < kRows; ++i)
      texts.insert(texts.end(), written[row].begin(), written[row].end());
    const std::vector<double> expected = known_logits(texts);
    for (size_t i = 0; i < logits[row].size(); ++i)
      EXPECT_NEAR(logits[row][i], expected[i], 1e-10) << row << " " << i;
  }
}

Config config_of(const std::string& rest) {
  return parse_config("{model: {name: energy_flow, embedding_width: 16}, " + rest + "}", "x");
}

// What of section 4.1 of the specification a step makes small, and through what gradients go.
TEST(TextBridge, TheLatticeIsRunOnceAStep) {
  const auto count_loops = [](const Config& config, int64_t length) {
    const TracedStep step = trace_evaluation(
        energy_loss(config, {.vocabulary = 48, .padding = 0, .begin = 2, .end = 3}),
        PairBatches::fields_of(2, 16, length));
    int loops = 0;
    for (const Node& node : step.graph.nodes()) loops += node.op->name == "loop";
    return loops;
  };
  const std::string lattice = "train: {batch_size: 2}, lattice: {width: 4, height: 4}";
  const int without = count_loops(config_of(lattice), 0);
  EXPECT_GE(without, 1);
  EXPECT_EQ(count_loops(config_of(lattice + ", bridge: {encoder: transformer, width: 16, "
                                            "hidden: 16, tokens: 8}"),
                        8),
            without);
}

}  // namespace
}  // namespace fullbore::energy_flow
