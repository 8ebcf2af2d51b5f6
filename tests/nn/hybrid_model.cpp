#include "hybrid_model.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "fullbore/nn/modules.h"
#include "fullbore/nn/rms_norm.h"

namespace fullbore {
namespace {

Tensor with_gain(Trace& trace, const char* name, Tensor x) {
  const Tensor normal = nn::rms_norm(trace, fmt::format("{}_norm", name), x);
  return trace.parameter(fmt::format("{}_gain", name), {x.dim(2)}, Initializer::zeros()) * normal;
}

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

Run run(Trace& trace, const Hybrid& model, Tensor tokens, const std::vector<LayerState>& states,
        int64_t chunk) {
  const Tensor table = nn::embedding_table(trace, "embed", model.vocabulary, model.width);
  Tensor x = gather(table, tokens);
  Run made;
  for (int64_t layer = 0; layer < model.layers; ++layer) {
    const Scope scope(trace, fmt::format("layers.{}", layer));
    const LayerState before = states.empty() ? LayerState{} : states[static_cast<size_t>(layer)];
    const Tensor n = nn::rms_norm(trace, "norm", x);
    LayerState after;
    Tensor r;
    if (model.finch) {
      const nn::TimeMixResult mixed = nn::rwkv6_time_mix(
          trace, "rwkv", n,
          {.heads = model.heads,
           .mix_rank = model.mix_rank,
           .decay_rank = model.decay_rank,
           .chunk = chunk,
           .initializers = nn::TimeMixInitializers::of_layer(layer, model.layers, model.width),
           .state = before.time_mix});
      r = mixed.y;
      after.time_mix = mixed.state;
    } else {
      const nn::StaticMixResult mixed = nn::rwkv6_static_mix(
          trace, "rwkv", n,
          {.heads = model.heads, .chunk = chunk, .memory = before.time_mix.memory});
      r = mixed.y;
      after.time_mix.memory = mixed.memory;
    }
    const nn::Mamba2Result mamba = nn::mamba2(trace, "mamba", n,
                                              {.inner = model.inner,
                                               .heads = model.mamba_heads,
                                               .states = model.states,
                                               .chunk = chunk,
                                               .state = before.mamba});
    after.mamba = mamba.state;
    x = x + (with_gain(trace, "rwkv", r) + with_gain(trace, "mamba", mamba.y));
    const nn::LinearOptions plain{.bias = false};
    const Tensor hidden =
        nn::linear(trace, "up", nn::rms_norm(trace, "hidden_norm", x), 4 * model.width, plain);
    x = x + nn::linear(trace, "down", gelu(hidden), model.width, plain);
    made.states.push_back(after);
  }
  made.logits = linear(nn::rms_norm(trace, "final_norm", x), table);
  return made;
}

int64_t parameter_count(const Trace& trace, const std::string& part) {
  int64_t count = 0;
  for (const Trace::Parameter& parameter : trace.parameters())
    if (parameter.name.find(part) != std::string::npos) count += parameter.tensor.type().elements();
  return count;
}

Hybrid preset(bool finch) {
  return {.finch = finch,
          .vocabulary = 97,
          .width = 128,
          .layers = 8,
          .heads = 4,
          .mix_rank = 32,
          .decay_rank = 64,
          .inner = 256,
          .mamba_heads = 4,
          .states = 64};
}

std::map<std::string, Literal> golden_parameters(const Trace& trace, const Hybrid& model) {
  std::vector<std::pair<std::string, Filled>> order = {{"embed.weight", {"", 0, 0.5}}};
  for (int64_t layer = 0; layer < model.layers; ++layer) {
    const std::string prefix = fmt::format("layers.{}.", layer);
    order.push_back({prefix + "norm.weight", {"", 1, 0.1}});
    for (const Filled& each : model.finch ? kFinch : kStatic)
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

}  // namespace fullbore
