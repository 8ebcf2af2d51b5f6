#include "workloads/energy_flow/surface_mapper.h"

#include <algorithm>

#include "fullbore/ir/fp32_scope.h"

namespace fullbore::energy_flow {
namespace {

constexpr int64_t kLeastInner = 384;
constexpr double kTableDeviation = 0.02;
constexpr double kWideDropout = 0.1;
constexpr double kNarrowDropout = 0.05;

int64_t inner_width(int64_t cells) { return std::max(kLeastInner, 2 * cells); }

Tensor block(Tensor x, const LinearWeights& linear, const NormWeights& norm, const DropoutBy& drop,
             double probability) {
  const Tensor y = apply_norm(gelu(apply_linear(x, linear)), norm);
  return drop ? drop(y, probability) : y;
}

}  // namespace

MapperWeights declare_mapper(Trace& trace, int64_t width, int64_t cells, bool trained) {
  const Scope scope(trace, "mapper");
  const WeightDeclarer declare(trace, trained);
  const int64_t inner = inner_width(cells);
  MapperWeights weights;
  weights.layers = {declare.glorot_linear("layers.0", inner, width),
                    declare.glorot_linear("layers.1", 2 * cells, inner),
                    declare.glorot_linear("layers.2", cells, 2 * cells)};
  weights.norms = {declare.norm("norms.0", inner), declare.norm("norms.1", 2 * cells)};
  weights.gain = declare.tensor("gain", {}, Initializer::ones());
  weights.shift = declare.tensor("shift", {}, Initializer::zeros());
  weights.table = declare.tensor("table", {cells}, Initializer::normal(kTableDeviation));
  return weights;
}

Tensor map_to_surface(const MapperWeights& weights, Tensor embedding, const DropoutBy& drop) {
  Tensor x = block(embedding, weights.layers[0], weights.norms[0], drop, kWideDropout);
  x = block(x, weights.layers[1], weights.norms[1], drop, kNarrowDropout);
  x = apply_linear(x, weights.layers[2]);
  const Fp32Scope island(x.builder());
  const Tensor v = tanh(x);
  const auto of = [&](Tensor weight) { return cast(weight, v.dtype()); };
  return of(weights.gain) * v + of(weights.shift) + of(weights.table);
}

CollectorWeights declare_collector(Trace& trace, int64_t width, int64_t cells) {
  const Scope scope(trace, "collector");
  const WeightDeclarer declare(trace);
  const int64_t inner = inner_width(cells);
  CollectorWeights weights;
  weights.scale = declare.tensor("scale", {cells}, Initializer::ones());
  weights.layers = {declare.glorot_linear("layers.0", 2 * cells, cells),
                    declare.glorot_linear("layers.1", inner, 2 * cells),
                    declare.glorot_linear("layers.2", width, inner)};
  weights.norms = {declare.norm("norms.0", 2 * cells), declare.norm("norms.1", inner)};
  return weights;
}

Tensor collect(const CollectorWeights& weights, Tensor surface, const DropoutBy& drop) {
  Tensor x = surface * cast(weights.scale, surface.dtype());
  x = block(x, weights.layers[0], weights.norms[0], drop, kNarrowDropout);
  x = block(x, weights.layers[1], weights.norms[1], drop, kWideDropout);
  return apply_linear(x, weights.layers[2]);
}

}  // namespace fullbore::energy_flow
