#include "workloads/energy_flow/flow_rule.h"

#include <algorithm>

#include "fullbore/ir/fp32_scope.h"

namespace fullbore::energy_flow {
namespace {

constexpr double kLongestMove = 0.5;

/// [n] of [n, columns].
Tensor column(Tensor x, int64_t which) { return squeeze(slice(x, 1, which, which + 1), 1); }

Tensor whole(Tensor x) { return cast(x, DType::i32); }

double last(int64_t extent) { return static_cast<double>(extent - 1); }

// min(max(count, 0), most), i32, of numbers that are whole.
Tensor limited_count(Tensor count, int64_t most) {
  return whole(clamp(stop_gradient(count), 0, static_cast<double>(most)));
}

// How many children a move of this length has.
Tensor children_of_length(Tensor length, const LatticeOptions& options) {
  const Tensor count = floor(length / options.spawn_threshold) - 1.0;
  const Tensor enough = greater(length, options.spawn_threshold);
  return limited_count(select(enough, count, 0.0), options.most_spawned);
}

Tensor children_of_gate(Tensor gate, const LatticeOptions& options) {
  const double most = static_cast<double>(options.most_spawned);
  const Tensor share = (gate - options.spawn_threshold) / (1 - options.spawn_threshold) * most;
  const Tensor open = greater(gate, options.spawn_threshold);
  return limited_count(select(open, floor(share) + 1.0, 0.0), options.most_spawned);
}

FlowEnd relative_end(const LatticeOptions& options, const Flows& flows) {
  const Fp32Scope island(flows.position.builder());
  const auto nearest = [&](int64_t axis, int64_t extent) {
    const Tensor place = (stop_gradient(column(flows.position, axis)) + 1.0) / 2.0 * last(extent);
    return whole(clamp(round(place), 0, last(extent)));
  };
  const Tensor row = nearest(1, options.height) * static_cast<double>(options.width);
  const Tensor z = column(flows.position, 2);
  return {row + nearest(0, options.width), minimum(abs(z + 1.0), abs(1.0 - z))};
}

FlowMove move_relative(const LatticeOptions& options, const NetworkWeights& weights, Tensor scale,
                       const FlowNoise& noise, const Flows& flows) {
  Prediction prediction =
      predict(weights, FlowMode::relative, flows.position, flows.energy, flows.hidden);
  const Fp32Scope island(flows.position.builder());
  Tensor displacement = prediction.displacement;
  if (scale.valid()) displacement = displacement * cast(scale, displacement.dtype());
  Tensor reached = flows.position + clamp(displacement, -kLongestMove, kLongestMove);
  if (noise) reached = reached + noise(flows) * options.noise;
  const Tensor inside = clamp(reached, -1, 1);
  const Tensor moved = stop_gradient(inside - flows.position);
  const Tensor length = sqrt(reduce_sum(moved * moved, {1}));
  const Tensor folded = clamp(select(less(reached, -1.0), -2.0 - reached,
                                     select(greater(reached, 1.0), 2.0 - reached, reached)),
                              -1, 1);
  const Tensor parts[] = {slice(folded, 1, 0, 2), slice(inside, 1, 2, 3)};

  FlowMove move;
  move.next = {
      concat(parts, 1), prediction.energy, std::move(prediction.hidden), flows.age + 1.0, {}, {}};
  const Tensor z = stop_gradient(column(inside, 2));
  move.exits = logical_or(less_equal(z, -1.0), greater_equal(z, 1.0));
  move.projects =
      logical_and(logical_not(move.exits),
                  greater_equal(move.next.age, static_cast<double>(options.most_steps())));
  move.children = children_of_length(length, options);
  move.child = move.next;
  move.child.position = flows.position;
  const Tensor sides = stop_gradient(slice(reached, 1, 0, 2));
  move.reflected = greater(reduce_max(abs(sides), {1}), 1.0);
  return move;
}

FlowMove move_absolute(const LatticeOptions& options, const NetworkWeights& weights,
                       const std::function<Tensor(const Flows&)>& z_bias, const FlowNoise& noise,
                       const FlowDropout& drop, const Flows& flows) {
  const double width = last(options.width), height = last(options.height);
  const double depth = static_cast<double>(options.depth);
  GraphBuilder& builder = flows.position.builder();
  const auto row = [&](std::vector<double> values) {
    return constant(builder, {flows.position.dtype(), {3}}, std::move(values));
  };
  const auto normalized_position = [&] {
    const Fp32Scope island(builder);
    return 2.0 * flows.position / row({width, height, last(options.depth)}) - 1.0;
  };
  const auto dropped = [&](Tensor x) { return drop(flows, x); };
  Prediction prediction = predict(weights, FlowMode::absolute, normalized_position(), flows.energy,
                                  flows.hidden, drop ? Dropout(dropped) : Dropout());
  const Fp32Scope island(builder);
  Tensor raw = (prediction.position + 1.0) / 2.0 * row({width, height, 2 * depth - 1});
  if (noise) raw = raw + noise(flows) * options.noise;
  Tensor z = column(raw, 2);
  if (z_bias) z = z + z_bias(flows);
  z = select(greater_equal(z, depth), depth, round(z));
  const Tensor parts[] = {slice(round(raw), 1, 0, 2), expand_dims(z, 1)};
  const Tensor next = stop_gradient(concat(parts, 1));

  FlowMove move;
  move.next = {next, prediction.energy, std::move(prediction.hidden), flows.age + 1.0, {}, {}};
  const Tensor x = column(next, 0), y = column(next, 1);
  z = column(next, 2);
  const Tensor energy = stop_gradient(column(prediction.energy, 0));
  const Tensor weak = less_equal(abs((energy + 1.0) / 2.0), options.energy_threshold);
  const Tensor backward =
      logical_and(logical_not(weak), less_equal(z, stop_gradient(column(flows.position, 2))));
  Tensor gone = logical_or(weak, backward);
  const Tensor outside = logical_or(logical_or(less(x, 0.0), greater(x, width)),
                                    logical_or(less(y, 0.0), greater(y, height)));
  const Tensor bounds = logical_and(logical_not(gone), outside);
  gone = logical_or(gone, bounds);
  move.deaths = {{"energy", weak}, {"backward", backward}, {"bounds", bounds}};
  move.exits = logical_and(logical_not(gone), greater_equal(z, depth - 1));
  move.children = children_of_gate(column(prediction.gate, 0), options);
  move.child = move.next;
  const Tensor shares = expand_dims(cast(move.children, energy.dtype()) + 1.0, 1);
  move.child.energy = prediction.spawn_energy / shares;
  return move;
}

}  // namespace

FlowRule relative_rule(const LatticeOptions& options, const NetworkWeights& weights, Tensor scale,
                       const FlowNoise& noise) {
  return {[=](const Flows& flows) { return move_relative(options, weights, scale, noise, flows); },
          [=](const Flows& flows) { return relative_end(options, flows); }};
}

FlowRule absolute_rule(const LatticeOptions& options, const NetworkWeights& weights,
                       const std::function<Tensor(const Flows&)>& z_bias, const FlowNoise& noise,
                       const FlowDropout& drop) {
  return {[=](const Flows& flows) {
            return move_absolute(options, weights, z_bias, noise, drop, flows);
          },
          [=](const Flows& flows) {
            const Fp32Scope island(flows.position.builder());
            const Tensor cell = column(flows.position, 1) * static_cast<double>(options.width) +
                                column(flows.position, 0);
            return FlowEnd{whole(stop_gradient(cell)), zeros_like(column(flows.energy, 0))};
          }};
}

}  // namespace fullbore::energy_flow
