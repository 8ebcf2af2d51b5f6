#include <fmt/format.h>

#include "fullbore/base/error.h"
#include "workloads/hybrid/hybrid_model.h"

namespace fullbore {
namespace {

// One tensor of a layer's state: its name within the layer, its shape, and where it is kept.
struct Part {
  const char* name;
  Shape shape;
  Tensor& (*in)(HybridLayerState&);
};

// Those of any layer, in their order.
std::vector<Part> parts(const HybridConfig& config, int64_t batch) {
  const int64_t key = config.width / config.heads;
  const auto previous = [](HybridLayerState& s) -> Tensor& { return s.time_mix.previous; };
  const auto rwkv = [](HybridLayerState& s) -> Tensor& { return s.time_mix.memory; };
  const auto history = [](HybridLayerState& s) -> Tensor& { return s.mamba.history; };
  const auto mamba = [](HybridLayerState& s) -> Tensor& { return s.mamba.memory; };
  const auto channel_mix = [](HybridLayerState& s) -> Tensor& { return s.channel_mix; };
  std::vector<Part> made;
  if (config.branch == HybridBranch::finch)
    made.push_back({"rwkv.previous", {batch, config.width}, previous});
  const bool channel_softmax = config.branch == HybridBranch::channel_softmax;
  if (!channel_softmax) made.push_back({"rwkv.memory", {batch, config.heads, key, key}, rwkv});
  const int64_t read = config.inner + (channel_softmax ? 0 : 2 * config.states);
  made.push_back({"mamba.history", {batch, config.convolution - 1, read}, history});
  const Shape heads{batch, config.mamba_heads, config.states, config.inner / config.mamba_heads};
  made.push_back(
      {"mamba.memory", channel_softmax ? Shape{batch, config.inner, config.states} : heads, mamba});
  if (config.channel_mix)
    made.push_back({"channel_mix.previous", {batch, config.width}, channel_mix});
  return made;
}

}  // namespace

std::vector<HybridStateTensor> hybrid_state_tensors(const HybridConfig& config, int64_t batch) {
  const std::vector<Part> of_layer = parts(config, batch);
  std::vector<HybridStateTensor> tensors;
  for (int64_t layer = 0; layer < config.layers; ++layer)
    for (const Part& part : of_layer)
      tensors.push_back({fmt::format("layers.{}.{}", layer, part.name), {DType::f32, part.shape}});
  return tensors;
}

HybridState hybrid_state(const HybridConfig& config, std::span<const Tensor> tensors) {
  const std::vector<Part> of_layer = parts(config, 1);
  const size_t expected = of_layer.size() * static_cast<size_t>(config.layers);
  if (tensors.size() != expected)
    throw UsageError(
        fmt::format("a state of {} tensors, {} were expected", tensors.size(), expected));
  HybridState state;
  for (size_t at = 0; at < expected;) {
    HybridLayerState& layer = state.layers.emplace_back();
    for (const Part& part : of_layer) part.in(layer) = tensors[at++];
  }
  return state;
}

std::vector<Tensor> hybrid_tensors(const HybridConfig& config, const HybridState& state) {
  const std::vector<Part> of_layer = parts(config, 1);
  std::vector<Tensor> tensors;
  for (HybridLayerState layer : state.layers)
    for (const Part& part : of_layer) tensors.push_back(part.in(layer));
  return tensors;
}

}  // namespace fullbore
