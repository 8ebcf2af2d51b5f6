#pragma once
#include <array>
#include <functional>

#include "workloads/energy_flow/affine_layers.h"

namespace fullbore::energy_flow {

/// Sets elements of x to zero with a probability; empty: nothing is dropped.
using DropoutBy = std::function<Tensor(Tensor x, double probability)>;

/// From a teacher's embedding [B, W] to energies on a surface [B, S] of S cells. With I = max(384, 2 S):
///
///   v = tanh(L_S(N(g(L_2S(N(g(L_I(x))))))),  surface = gain v + shift + table
///
/// L_n linear with n outputs, g the exact GELU, N a layer norm; dropout 0.1 and 0.05 behind the norms.
struct MapperWeights {
  std::array<LinearWeights, 3> layers;
  std::array<NormWeights, 2> norms;
  Tensor gain;   ///< [], 1 at first
  Tensor shift;  ///< [], 0
  Tensor table;  ///< [S], normal of deviation 0.02
};
/// Under the scope "mapper". `trained`: or kept as it is drawn.
MapperWeights declare_mapper(Trace& trace, int64_t width, int64_t cells, bool trained);
Tensor map_to_surface(const MapperWeights& weights, Tensor embedding, const DropoutBy& drop = {});

/// The way back, from a surface [B, S] to an embedding [B, W]:
///
///   L_W(N(g(L_I(N(g(L_2S(scale * surface)))))))
///
/// with dropout 0.05 and 0.1 behind the norms.
struct CollectorWeights {
  Tensor scale;  ///< [S], ones at first
  std::array<LinearWeights, 3> layers;
  std::array<NormWeights, 2> norms;
};
/// Under the scope "collector".
CollectorWeights declare_collector(Trace& trace, int64_t width, int64_t cells);
Tensor collect(const CollectorWeights& weights, Tensor surface, const DropoutBy& drop = {});

}  // namespace fullbore::energy_flow
