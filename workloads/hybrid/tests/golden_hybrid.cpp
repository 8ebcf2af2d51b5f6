#include "golden_hybrid.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "fullbore/base/philox.h"

namespace fullbore {
namespace {

struct Filled {
  const char* name;
  double centre, size;
};
const std::vector<Filled> kFinch = {
    {"rwkv.mix.x", 0.5, 0.3},           {"rwkv.mix.w", 0.5, 0.3},
    {"rwkv.mix.k", 0.5, 0.3},           {"rwkv.mix.v", 0.5, 0.3},
    {"rwkv.mix.r", 0.5, 0.3},           {"rwkv.mix.g", 0.5, 0.3},
    {"rwkv.mix.down", 0, 0.3},          {"rwkv.mix.up", 0, 0.3},
    {"rwkv.decay.base", -1, 0.5},       {"rwkv.decay.down", 0, 0.3},
    {"rwkv.decay.up", 0, 0.3},          {"rwkv.bonus", 0.2, 0.3},
    {"rwkv.receptance.weight", 0, 0.3}, {"rwkv.key.weight", 0, 0.3},
    {"rwkv.value.weight", 0, 0.3},      {"rwkv.gate.weight", 0, 0.3},
    {"rwkv.output.weight", 0, 0.3},     {"rwkv.norm.weight", 1, 0.1},
    {"rwkv.norm.bias", 0, 0.1}};
const std::vector<Filled> kStatic = {{"rwkv.norm.weight", 1, 0.1},
                                     {"rwkv.norm.bias", 0, 0.1},
                                     {"rwkv.decay", -1, 0.5},
                                     {"rwkv.bonus", 0.2, 0.3},
                                     {"rwkv.key.weight", 0, 0.3},
                                     {"rwkv.receptance.weight", 0, 0.3},
                                     {"rwkv.value.weight", 0, 0.3},
                                     {"rwkv.output.weight", 0, 0.3},
                                     {"rwkv.hidden_norm.weight", 1, 0.1},
                                     {"rwkv.hidden_norm.bias", 0, 0.1},
                                     {"rwkv.up.weight", 0, 0.3},
                                     {"rwkv.down.weight", 0, 0.3}};
const std::vector<Filled> kOthers = {{"mamba.input.weight", 0, 0.3},
                                     {"mamba.convolution.weight", 0, 0.4},
                                     {"mamba.convolution.bias", 0, 0.1},
                                     {"mamba.step_bias", -1, 0.5},
                                     {"mamba.decay", 0.3, 0.4},
                                     {"mamba.skip", 1, 0.2},
                                     {"mamba.norm.weight", 1, 0.1},
                                     {"mamba.output.weight", 0, 0.3},
                                     {"rwkv_norm.weight", 1, 0.1},
                                     {"mamba_norm.weight", 1, 0.1},
                                     {"rwkv_gain", 0.7, 0.1},
                                     {"mamba_gain", 0.3, 0.1},
                                     {"hidden_norm.weight", 1, 0.1},
                                     {"up.weight", 0, 0.3},
                                     {"down.weight", 0, 0.3}};

}  // namespace

HybridConfig golden_hybrid(HybridBranch branch) {
  return {.branch = branch,
          .vocabulary = 11,
          .layers = 2,
          .width = 8,
          .heads = 2,
          .mix_rank = 2,
          .decay_rank = 3,
          .inner = 16,
          .mamba_heads = 2,
          .states = 4,
          .hidden = 32,
          .chunk = 4};
}

int64_t parameter_count(const Trace& trace, const std::string& part) {
  int64_t count = 0;
  for (const Trace::Parameter& parameter : trace.parameters())
    if (parameter.name.find(part) != std::string::npos) count += parameter.tensor.type().elements();
  return count;
}

std::map<std::string, Literal> golden_parameters(const Trace& trace, const HybridConfig& model) {
  std::vector<std::pair<std::string, Filled>> order = {{"embed.weight", {"", 0, 0.5}}};
  for (int64_t layer = 0; layer < model.layers; ++layer) {
    const std::string prefix = fmt::format("layers.{}.", layer);
    order.push_back({prefix + "norm.weight", {"", 1, 0.1}});
    for (const Filled& each : model.branch == HybridBranch::finch ? kFinch : kStatic)
      order.push_back({prefix + each.name, each});
    for (const Filled& each : kOthers) order.push_back({prefix + each.name, each});
  }
  order.push_back({"final_norm.weight", {"", 1, 0.1}});
  EXPECT_EQ(order.size(), trace.parameters().size());
  std::map<std::string, Literal> values;
  for (const Trace::Parameter& parameter : trace.parameters()) {
    double number = 0;
    while (order[static_cast<size_t>(number)].first != parameter.name) ++number;
    const Filled& filled = order[static_cast<size_t>(number)].second;
    Literal literal(parameter.tensor.type());
    for (int64_t i = 0; i < literal.elements(); ++i)
      literal.put(i, filled.centre +
                         filled.size * std::sin(0.7 * static_cast<double>(i) + 1.3 * number + 0.5));
    values[parameter.name] = std::move(literal);
  }
  return values;
}

std::map<std::string, Literal> drawn_parameters(const Trace& trace) {
  std::map<std::string, Literal> values;
  for (const Trace::Parameter& parameter : trace.parameters()) {
    const TensorType& type = parameter.tensor.type();
    std::vector<float> first(static_cast<size_t>(type.elements()));
    initialize(trace.initializers().at(parameter.name), type, 1, parameter.name, first.data());
    PhiloxStream draws(values.size() + 1);
    Literal literal(type);
    for (size_t i = 0; i < first.size(); ++i)
      literal.put(static_cast<int64_t>(i), first[i] + 0.2 * draws.normal());
    values[parameter.name] = std::move(literal);
  }
  return values;
}

}  // namespace fullbore
