#include "workloads/energy_flow/flow_networks.h"

#include <fmt/format.h>

#include "fullbore/ir/fp32_scope.h"

namespace fullbore::energy_flow {
namespace {

HeadWeights declare_head(const WeightDeclarer& declare, const std::string& name, int64_t inputs,
                         int64_t hidden, int64_t outputs,
                         const Initializer& bias = Initializer::zeros()) {
  const Scope scope(declare.trace(), name);
  return {declare.glorot_linear("hidden", hidden, inputs),
          declare.glorot_linear("output", outputs, hidden, bias)};
}

// What the first layer of the neuron makes of a place and an energy: moves are smaller than bf16 tells places apart.
Tensor place_features(const NetworkWeights& weights, Tensor position, Tensor energy) {
  const Fp32Scope island(position.builder());
  const Tensor inputs[] = {apply_linear(position, weights.coordinates), energy};
  return apply_linear(concat(inputs, 1), weights.neuron[0]);
}

}  // namespace

NetworkWeights declare_networks(Trace& trace, const NetworkSizes& sizes) {
  const WeightDeclarer declare(trace);
  NetworkWeights weights;
  {
    const Scope scope(trace, "neuron");
    const int64_t hidden = sizes.neuron_hidden;
    weights.coordinates = declare.he_linear("coordinates", 3, 3);
    weights.neuron = {declare.he_linear("layers.0", hidden, 4),
                      declare.he_linear("layers.1", hidden, hidden),
                      declare.he_linear("layers.2", sizes.neuron_outputs, hidden)};
    weights.norms = {declare.norm("norms.0", hidden), declare.norm("norms.1", hidden)};
  }
  const Scope scope(trace, "carrier");
  const int64_t width = sizes.carrier_hidden;
  for (int64_t layer = 0; layer < sizes.carrier_layers; ++layer)
    weights.gru.push_back(nn::gru_weights(trace, fmt::format("gru.{}", layer),
                                          layer == 0 ? sizes.neuron_outputs + 1 : width, width));
  weights.energy = declare_head(declare, "energy", width, width / 2, 1);
  if (sizes.mode == FlowMode::relative) {
    weights.displacement = declare_head(declare, "displacement", width, sizes.head_hidden, 3);
    return weights;
  }
  weights.position = declare_head(declare, "position", width, sizes.head_hidden, 3,
                                  Initializer::given({0, 0, sizes.position_z_bias}));
  weights.gate = declare_head(declare, "gate", width, sizes.head_hidden, 1);
  weights.spawn_energy = declare.glorot_linear("spawn_energy", 1, width);
  return weights;
}

Prediction predict(const NetworkWeights& weights, FlowMode mode, Tensor position, Tensor energy,
                   const std::vector<Tensor>& hidden, const Dropout& drop) {
  const auto dropped = [&](Tensor x) { return drop ? drop(x) : x; };
  Tensor features = place_features(weights, position, energy);
  for (size_t layer = 0; layer < 2; ++layer) {
    if (layer > 0) features = apply_linear(features, weights.neuron[layer]);
    features = dropped(gelu(apply_norm(features, weights.norms[layer])));
  }
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
  const Tensor energy_sum = head(weights.energy, true);
  {
    const Fp32Scope island(x.builder());
    prediction.energy = tanh(energy_sum);
  }
  if (mode == FlowMode::relative) {
    prediction.displacement = head(weights.displacement, false);
    return prediction;
  }
  const Tensor place = head(weights.position, true), gate = head(weights.gate, false);
  const Tensor spawn_sum = apply_linear(x, weights.spawn_energy);
  const Fp32Scope island(x.builder());
  prediction.position = tanh(place);
  prediction.gate = sigmoid(gate);
  prediction.spawn_energy = tanh(spawn_sum);
  return prediction;
}

}  // namespace fullbore::energy_flow
