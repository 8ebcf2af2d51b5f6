// Texts that begin alike, in one row: what a model says of each token, and what that teaches, is as of each text alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>

#include "fullbore/autodiff/backward.h"
#include "fullbore/base/philox.h"
#include "fullbore/runtime/program.h"
#include "fullbore/text/text_keys.h"
#include "fullbore/text/text_model.h"
#include "fullbore/train/step_function.h"
#include "tests/support/device.h"
#include "workloads/language/gpt_keys.h"
#include "workloads/language/llama_keys.h"

namespace fullbore {
namespace {

using testing_support::cpu_device;
using testing_support::Edited;

constexpr int64_t kVocabulary = 13, kShared = 70, kEnds = 3;
constexpr int64_t kLengths[kEnds] = {9, 40, 24};

/// Texts in rows: as they begin alike in one, or each in a row of its own.
struct Rows {
  int64_t count = 1, length = 0;
  std::vector<int32_t> tokens, branches, positions;
  std::vector<int64_t>
      places;  ///< in all rows, of the tokens behind what is shared, text after text
};

Rows rows_of(bool branched) {
  PhiloxStream draws(5);
  const auto text = [&](int64_t count) {
    std::vector<int32_t> tokens(static_cast<size_t>(count));
    for (int32_t& token : tokens) token = static_cast<int32_t>(draws.below(kVocabulary));
    return tokens;
  };
  const std::vector<int32_t> shared = text(kShared);
  const int64_t ends = std::accumulate(std::begin(kLengths), std::end(kLengths), int64_t{0});
  Rows rows;
  rows.count = branched ? 1 : kEnds;
  rows.length = branched ? kShared + ends + 6 : 128;
  const auto size = static_cast<size_t>(rows.count * rows.length);
  rows.tokens.assign(size, 0);
  rows.branches.assign(size, kEnds + 1);
  rows.positions.assign(size, 0);
  const auto put = [&](int64_t at, int32_t token, int64_t branch, int64_t position) {
    const auto i = static_cast<size_t>(at);
    rows.tokens[i] = token;
    rows.branches[i] = static_cast<int32_t>(branch);
    rows.positions[i] = static_cast<int32_t>(position);
  };
  int64_t next = kShared;
  for (int64_t end = 0; end < kEnds; ++end) {
    const int64_t row = branched ? 0 : end * rows.length;
    for (int64_t i = 0; i < kShared; ++i) put(row + i, shared[static_cast<size_t>(i)], 0, i);
    if (!branched) next = row + kShared;
    for (const int32_t token : text(kLengths[end])) {
      rows.places.push_back(next);
      put(next, token, end + 1, kShared + std::ssize(rows.places) - 1);
      ++next;
    }
  }
  // Positions count on from what is shared in each text anew.
  size_t i = 0;
  for (const int64_t length : kLengths)
    for (int64_t place = 0; place < length; ++place, ++i)
      rows.positions[static_cast<size_t>(rows.places[i])] = static_cast<int32_t>(kShared + place);
  return rows;
}

struct Told {
  std::vector<float> hidden;                         ///< of the ends' tokens, text after text
  std::map<std::string, std::vector<float>> slopes;  ///< by parameter
};

/// The model's own program on these rows; parameters are the same in every call.
Told tell(const Config& config, bool branched, bool row_invariant) {
  const Rows rows = rows_of(branched);
  const TextModel& model = text_model(config);
  Trace trace("tell", true);
  const TensorType type{DType::i32, {rows.count, rows.length}};
  const auto input = [&](const char* name) { return trace.batch(name, type); };
  const LanguageModelHead head =
      branched ? model.branched_hidden(config, kVocabulary)(
                     trace, {input("tokens"), input("branches"), input("positions")})
               : model.hidden(config, kVocabulary)(trace, input("tokens"));
  const auto ends = static_cast<int64_t>(rows.places.size());
  const Tensor places = trace.batch("places", {DType::i64, {ends}});
  const int64_t width = head.hidden.dim(2);
  const Tensor hidden = gather(reshape(head.hidden, {rows.count * rows.length, width}), places);
  // Each element counts in its own way.
  const Tensor factors =
      cast(iota(trace.builder(), {DType::i64, hidden.shape()}, 0), DType::f32) * 0.1 - 2.0 +
      cast(iota(trace.builder(), {DType::i64, hidden.shape()}, 1), DType::f32) * 0.3;
  std::vector<Tensor> wanted;
  for (const Trace::Parameter& parameter : trace.parameters()) wanted.push_back(parameter.tensor);
  const std::vector<Tensor> slopes =
      gradient(reduce_sum(hidden * sin(hidden * factors), {0, 1}), wanted);
  const std::vector<Trace::Parameter> parameters = trace.parameters();
  for (size_t i = 0; i < slopes.size(); ++i) trace.result("slope " + parameters[i].name, slopes[i]);
  trace.result("hidden", hidden);
  const auto initializers = trace.initializers();
  const TracedStep step{trace.finish(), initializers};
  State state = initial_state(step, 3, cpu_device(2));
  for (size_t entry = 0; entry < state.entries().size(); ++entry) {
    PhiloxStream draws(17, entry);
    for (float& value : Edited<float>(state, state.entries()[entry].name))
      value += static_cast<float>(0.2 * draws.normal());
  }
  Program program = Program::compile(step.graph, state, {.row_invariant = row_invariant});
  struct alignas(64) Block {
    char bytes[64];
  };
  std::map<std::string, std::vector<Block>> memory;
  const auto put = [&](const char* name, const auto& values) {
    const size_t bytes = values.size() * sizeof(values[0]);
    std::vector<Block>& to = memory[name];
    to.resize(bytes / 64 + 1);
    std::memcpy(to.data(), values.data(), bytes);
  };
  put("tokens", rows.tokens);
  put("branches", rows.branches);
  put("positions", rows.positions);
  put("places", rows.places);
  std::vector<const void*> batch;
  for (const Graph::Input& each : program.plan().graph.inputs())
    if (!is_kept(each.role)) batch.push_back(memory.at(each.name).data());
  program.run(batch);
  Told told{program.read_result<float>(program.output("hidden")), {}};
  for (const Trace::Parameter& parameter : parameters)
    told.slopes[parameter.name] =
        program.read_result<float>(program.output("slope " + parameter.name));
  return told;
}

void expect_near(const std::vector<float>& a, const std::vector<float>& b, double share,
                 const std::string& what) {
  ASSERT_EQ(a.size(), b.size());
  double largest = 0;
  for (const float value : a) largest = std::max(largest, std::abs(static_cast<double>(value)));
  EXPECT_GT(largest, 1e-3) << what;
  for (size_t i = 0; i < a.size(); ++i)
    ASSERT_NEAR(a[i], b[i], share * largest) << what << "[" << i << "]";
}

Config config_of(const std::string& model) {
  Config config;
  config.model.name = model;
  TextKeys::Model& sizes = config.get<TextKeys>().model;
  sizes.layers = 2;
  sizes.heads = 4;
  sizes.width = 32;
  sizes.context = 128;
  sizes.vocabulary = kVocabulary;
  return config;
}

std::vector<std::pair<std::string, Config>> models() {
  std::vector<std::pair<std::string, Config>> models = {
      {"gpt", config_of("gpt")}, {"gpt, rotary", config_of("gpt")}, {"llama", config_of("llama")}};
  gpt_keys(models[1].second).positions = "rotary";
  gpt_keys(models[1].second).norm = "rms";
  llama_keys(models[2].second).key_value_heads = 2;
  return models;
}

TEST(Branches, TeachWhatEachTextAloneTeaches) {
  for (const auto& [name, config] : models()) {
    const Told alone = tell(config, false, false), shared = tell(config, true, false);
    expect_near(alone.hidden, shared.hidden, 1e-5, name);
    ASSERT_EQ(alone.slopes.size(), shared.slopes.size());
    for (const auto& [parameter, values] : alone.slopes)
      expect_near(values, shared.slopes.at(parameter), 2e-5, name + ", " + parameter);
  }
}

TEST(Branches, HaveTheBitsOfEachTextAloneWithRowInvariantKernels) {
  for (const auto& [name, config] : models())
    EXPECT_EQ(tell(config, false, true).hidden, tell(config, true, true).hidden) << name;
}

// Its keys are neighbours in a row, which those of a text are not there.
TEST(Branches, AreNotReadWithAWindow) {
  Config config = config_of("llama");
  EXPECT_TRUE(text_model(config).branched_hidden(config, kVocabulary));
  llama_keys(config).window = 32;
  EXPECT_FALSE(text_model(config).branched_hidden(config, kVocabulary));
}

}  // namespace
}  // namespace fullbore
