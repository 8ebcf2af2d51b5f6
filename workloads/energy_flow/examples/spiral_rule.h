#pragma once
#include <cmath>

#include "workloads/energy_flow/flow_rule.h"

/// A third way for flows to move, as an experiment would write it: storing, spawning, stopping, merging and gradients
/// come by themselves (test_own_rule.cpp).
namespace fullbore::energy_flow {

/// One linear map of (position, energy, 1), [5, 5]: what it makes of the first three is the pull towards a place, the
/// fourth the next energy, the fifth the heat.
struct SpiralWeights {
  Tensor map;
};

/// Positions are of [-1, 1]^3. In every step a flow turns by an angle around the axis x = y = 0 and rises by about 4 / D; it
/// leaves at the top, freezes where its heat is not above zero, and splits in two while it is young and energetic.
inline FlowRule spiral_rule(const LatticeOptions& options, const SpiralWeights& weights,
                            double angle) {
  const auto column = [](Tensor x, int64_t which) { return slice(x, 1, which, which + 1); };
  const auto flat = [](Tensor x) { return squeeze(stop_gradient(x), 1); };
  const auto move = [=](const Flows& flows) {
    const Tensor one = full(flows.energy.builder(), flows.energy.type(), 1);
    const Tensor inputs[] = {flows.position, flows.energy, one};
    const Tensor made = tanh(matmul(concat(inputs, 1), weights.map));
    const Tensor x = column(flows.position, 0), y = column(flows.position, 1);
    const Tensor parts[] = {
        clamp(x * std::cos(angle) - y * std::sin(angle) + 0.1 * column(made, 0), -1, 1),
        clamp(x * std::sin(angle) + y * std::cos(angle) + 0.1 * column(made, 1), -1, 1),
        column(flows.position, 2) +
            4.0 / static_cast<double>(options.depth) * (1.0 + 0.5 * column(made, 2))};
    FlowMove result;
    result.next = {concat(parts, 1), column(made, 3), flows.hidden, flows.age + 1.0, {}, {}};
    result.exits = greater_equal(flat(parts[2]), 1.0);
    const Tensor frozen = less_equal(flat(column(made, 4)), 0.0);
    result.deaths = {{"frozen", logical_and(frozen, logical_not(result.exits))}};
    const Tensor splits =
        logical_and(less(flows.age, 2.0), greater(abs(flat(column(made, 3))), 0.3));
    result.children = cast(splits, DType::i32);
    result.child = result.next;
    result.child.energy = 0.5 * result.next.energy;
    return result;
  };
  const auto end = [=](const Flows& flows) {
    const auto nearest = [&](int64_t axis, int64_t extent) {
      const Tensor place = flat(column(flows.position, axis));
      return cast(round((place + 1.0) / 2.0 * static_cast<double>(extent - 1)), DType::i32);
    };
    const Tensor row = nearest(1, options.height) * static_cast<double>(options.width);
    return FlowEnd{row + nearest(0, options.width), 1.0 - squeeze(column(flows.position, 2), 1)};
  };
  return {move, end};
}

}  // namespace fullbore::energy_flow
