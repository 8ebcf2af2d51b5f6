#include "workloads/energy_flow/flow_networks.h"

#include <fmt/format.h>

#include <cmath>

namespace fullbore::energy_flow {
namespace {

Tensor as(Tensor parameter, DType dtype) {
  return parameter.dtype() == dtype ? parameter : cast(parameter, dtype);
}

Tensor apply_linear(Tensor x, const LinearWeights& weights) {
  return linear(x, as(weights.weight, x.dtype()), as(weights.bias, x.dtype()));
}

Tensor apply_norm(Tensor x, const NormWeights& weights) {
  return layer_norm(x, as(weights.scale, x.dtype()), as(weights.shift, x.dtype()));
}

LinearWeights declare_linear(Trace& trace, const std::string& name, int64_t outputs, int64_t inputs,
                             double deviation) {
  const Scope scope(trace, name);
  return {trace.parameter("weight", {outputs, inputs}, Initializer::normal(deviation)),
          trace.parameter("bias", {outputs}, Initializer::zeros())};
}

LinearWeights declare_he(Trace& trace, const std::string& name, int64_t outputs, int64_t inputs) {
  return declare_linear(trace, name, outputs, inputs,
                        std::sqrt(2.0 / static_cast<double>(outputs)));
}

LinearWeights declare_glorot(Trace& trace, const std::string& name, int64_t outputs,
                             int64_t inputs) {
  return declare_linear(trace, name, outputs, inputs,
                        std::sqrt(2.0 / static_cast<double>(inputs + outputs)));
}

HeadWeights declare_head(Trace& trace, const std::string& name, int64_t inputs, int64_t hidden,
                         int64_t outputs) {
  const Scope scope(trace, name);
  return {declare_glorot(trace, "hidden", hidden, inputs),
          declare_glorot(trace, "output", outputs, hidden)};
}

NormWeights declare_norm(Trace& trace, const std::string& name, int64_t channels) {
  const Scope scope(trace, name);
  return {trace.parameter("weight", {channels}, Initializer::ones()),
          trace.parameter("bias", {channels}, Initializer::zeros())};
}

}  // namespace

NetworkWeights declare_networks(Trace& trace, const NetworkSizes& sizes) {
  NetworkWeights weights;
  {
    const Scope scope(trace, "neuron");
    const int64_t hidden = sizes.neuron_hidden;
    weights.coordinates = declare_he(trace, "coordinates", 3, 3);
    weights.neuron = {declare_he(trace, "layers.0", hidden, 4),
                      declare_he(trace, "layers.1", hidden, hidden),
                      declare_he(trace, "layers.2", sizes.neuron_outputs, hidden)};
    weights.norms = {declare_norm(trace, "norms.0", hidden),
                     declare_norm(trace, "norms.1", hidden)};
  }
  const Scope scope(trace, "carrier");
  const int64_t width = sizes.carrier_hidden;
  for (int64_t layer = 0; layer < sizes.carrier_layers; ++layer)
    weights.gru.push_back(nn::gru_weights(trace, fmt::format("gru.{}", layer),
                                          layer == 0 ? sizes.neuron_outputs + 1 : width, width));
  weights.energy = declare_head(trace, "energy", width, width / 2, 1);
  if (sizes.mode == FlowMode::relative) {
    weights.displacement = declare_head(trace, "displacement", width, sizes.head_hidden, 3);
    return weights;
  }
  weights.position = declare_head(trace, "position", width, sizes.head_hidden, 3);
  weights.gate = declare_head(trace, "gate", width, sizes.head_hidden, 1);
  weights.spawn_energy = declare_glorot(trace, "spawn_energy", 1, width);
  return weights;
}

Prediction predict(const NetworkWeights& weights, FlowMode mode, Tensor position, Tensor energy,
                   const std::vector<Tensor>& hidden, const Dropout& drop) {
  const auto dropped = [&](Tensor x) { return drop ? drop(x) : x; };
  const Tensor inputs[] = {apply_linear(position, weights.coordinates), energy};
  Tensor features = concat(inputs, 1);
  for (size_t layer = 0; layer < 2; ++layer)
    features = dropped(
        gelu(apply_norm(apply_linear(features, weights.neuron[layer]), weights.norms[layer])));
  const Tensor seen[] = {apply_linear(features, weights.neuron[2]), energy};
  Tensor x = concat(seen, 1);
  Prediction prediction;
  for (size_t layer = 0; layer < weights.gru.size(); ++layer) {
    if (layer > 0) x = dropped(x);
    x = nn::gru_step(x, hidden[layer], weights.gru[layer]);
    prediction.hidden.push_back(x);
  }
  const auto head = [&](const HeadWeights& layers, bool drops) {
    const Tensor inner = gelu(apply_linear(x, layers[0]));
    return apply_linear(drops ? dropped(inner) : inner, layers[1]);
  };
  prediction.energy = tanh(head(weights.energy, true));
  if (mode == FlowMode::relative) {
    prediction.displacement = head(weights.displacement, false);
    return prediction;
  }
  prediction.position = tanh(head(weights.position, true));
  prediction.gate = sigmoid(head(weights.gate, false));
  prediction.spawn_energy = tanh(apply_linear(x, weights.spawn_energy));
  return prediction;
}

}  // namespace fullbore::energy_flow
