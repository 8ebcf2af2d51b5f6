#pragma once
#include <array>
#include <vector>

#include "fullbore/nn/gru.h"
#include "fullbore/ops/ops.h"
#include "fullbore/trace/trace.h"
#include "workloads/energy_flow/affine_layers.h"
#include "workloads/energy_flow/lattice.h"

namespace fullbore::energy_flow {

/// Two layers with GELU between them.
using HeadWeights = std::array<LinearWeights, 2>;

/// What all flows share. Positions are given to the neuron as in [-1, 1].
struct NetworkWeights {
  LinearWeights coordinates;            ///< [3, 3]
  std::array<LinearWeights, 3> neuron;  ///< [nh, 4], [nh, nh], [no, nh]
  std::array<NormWeights, 2> norms;     ///< before the GELU behind the neuron's first two layers
  std::vector<nn::GruWeights> gru;      ///< the first takes [no + 1], the others [Hd]
  HeadWeights energy;                   ///< [Hd / 2, Hd], [1, Hd / 2]
  HeadWeights displacement;             ///< R: [hd, Hd], [3, hd]
  HeadWeights position;                 ///< A
  HeadWeights gate;                     ///< A: [hd, Hd], [1, hd]
  LinearWeights spawn_energy;           ///< A: [1, Hd]
};

struct NetworkSizes {
  FlowMode mode = FlowMode::relative;
  int64_t neuron_hidden = 32;
  int64_t neuron_outputs = 64;
  int64_t carrier_hidden = 256;
  int64_t carrier_layers = 2;
  int64_t head_hidden = 64;
  double position_z_bias = 0;  ///< A: of the position head's z at first
};

/// Declares them as parameters, f32. The neuron begins by He's rule (arXiv:1502.01852) with fan-out, heads by Glorot's,
/// biases at zero; see nn::gru_weights() for the GRU.
NetworkWeights declare_networks(Trace& trace, const NetworkSizes& sizes);

/// What the networks say of n flows.
struct Prediction {
  std::vector<Tensor> hidden;  ///< a layer each, [n, Hd]
  Tensor energy;               ///< [n, 1], in (-1, 1)
  Tensor displacement;         ///< R: [n, 3]
  Tensor position;             ///< A: [n, 3], in (-1, 1)
  Tensor gate;                 ///< A: [n, 1], in (0, 1)
  Tensor spawn_energy;         ///< A: [n, 1], in (-1, 1)
};

/// `drop` is applied behind each GELU and between GRU layers; empty: nothing is.
using Dropout = std::function<Tensor(Tensor)>;

/// position [n, 3] normalised, energy [n, 1], hidden a layer each [n, Hd].
Prediction predict(const NetworkWeights& weights, FlowMode mode, Tensor position, Tensor energy,
                   const std::vector<Tensor>& hidden, const Dropout& drop = {});

}  // namespace fullbore::energy_flow
