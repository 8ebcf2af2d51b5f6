#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numeric>
#include <optional>
#include <vector>

#include "fullbore/autodiff/backward.h"
#include "tests/support/evaluate.h"
#include "workloads/energy_flow/flow_lattice.h"
#include "workloads/energy_flow/tests/flow_reference.h"

/// The compiled lattice in double precision, on the reference's networks.
namespace fullbore::energy_flow {

inline LatticeOptions options_of(const reference::Lattice& lattice) {
  LatticeOptions options;
  options.mode =
      lattice.mode == reference::Mode::relative ? FlowMode::relative : FlowMode::absolute;
  options.width = lattice.width;
  options.height = lattice.height;
  options.depth = lattice.depth;
  options.capacity = std::min<int64_t>(lattice.capacity, 256);  // enough for all of these
  options.inject_overflow = InjectOverflow::truncate;
  options.spawn_threshold = lattice.spawn_threshold;
  options.most_spawned = lattice.most_spawned;
  options.energy_threshold = lattice.energy_threshold;
  options.project_on_stop = lattice.project_on_stop;
  options.readout =
      lattice.readout == reference::Readout::softmax ? Readout::softmax : Readout::linear;
  options.stop.on = lattice.stop.on;
  options.stop.threshold = lattice.stop.threshold;
  options.stop.patience = lattice.stop.patience;
  options.stop.min_steps = lattice.stop.min_steps;
  options.stop.of_initial = lattice.stop.of_initial;
  return options;
}

/// Weights and energies as inputs of a graph.
/// How the outputs of a graph are found.
using EvaluateGraph =
    std::function<std::vector<Literal>(const std::vector<Literal>&, const BuildMany&)>;

inline std::vector<Literal> inputs_of(reference::Networks& networks,
                                      const std::vector<double>& energies, int64_t samples) {
  std::vector<Literal> inputs;
  for (const reference::Matrix* matrix : networks.matrices())
    inputs.push_back(
        reals(matrix->columns == 1 ? Shape{matrix->rows} : Shape{matrix->rows, matrix->columns},
              matrix->elements));
  inputs.push_back(reals({samples, std::ssize(energies) / samples}, energies));
  return inputs;
}

inline NetworkWeights weights_of(const std::vector<Tensor>& inputs, size_t layers) {
  size_t next = 0;
  const auto take = [&](std::optional<Shape> shape = {}) {
    const Tensor tensor = inputs[next++];
    return shape ? reshape(tensor, *shape) : tensor;
  };
  // A matrix of one column is given as a vector.
  const auto take_linear = [&] {
    const Tensor weight = take(), bias = take();
    return LinearWeights{weight.rank() == 2 ? weight : expand_dims(weight, 1), bias};
  };
  NetworkWeights weights;
  for (LinearWeights* linear :
       {&weights.coordinates, &weights.neuron[0], &weights.neuron[1], &weights.neuron[2],
        &weights.energy[0], &weights.energy[1], &weights.displacement[0], &weights.displacement[1],
        &weights.position[0], &weights.position[1], &weights.gate[0], &weights.gate[1],
        &weights.spawn_energy})
    *linear = take_linear();
  for (size_t layer = 0; layer < layers; ++layer) {
    nn::GruWeights& gru = weights.gru.emplace_back();
    for (Tensor* tensor : {&gru.input, &gru.hidden, &gru.input_bias, &gru.hidden_bias})
      *tensor = take();
  }
  for (NormWeights& norm : weights.norms) {
    const TensorType type{inputs[0].dtype(), {weights.neuron[0].weight.dim(0)}};
    norm = {full(inputs[0].builder(), type, 1), full(inputs[0].builder(), type, 0)};
  }
  return weights;
}

inline FlowRule rule_of(const LatticeOptions& options, const NetworkWeights& weights) {
  return options.mode == FlowMode::relative ? relative_rule(options, weights)
                                            : absolute_rule(options, weights);
}

struct Outcome {
  std::vector<double> surface;
  int64_t executed = 0;
  std::vector<std::vector<int64_t>> counts;  ///< by step
  int64_t created = 0, dropped = 0, projected_on_stop = 0, active = 0;
};

inline Outcome run(const LatticeOptions& options, reference::Networks networks,
                   const std::vector<double>& energies, int64_t samples,
                   const EvaluateGraph& evaluate_graph = evaluate_all) {
  const size_t layers = networks.gru.size();
  const std::vector<Literal> results = evaluate_graph(
      inputs_of(networks, energies, samples),
      [&](GraphBuilder&, const std::vector<Tensor>& inputs) {
        const FlowRun flows =
            run_flows(options, rule_of(options, weights_of(inputs, layers)), inputs.back(),
                      static_cast<int64_t>(layers), networks.hidden());
        return std::vector<Tensor>{flows.surface, flows.executed, flows.counts,
                                   flows.created, flows.dropped,  flows.projected_on_stop,
                                   flows.active};
      });
  Outcome outcome;
  outcome.surface = elements(results[0]);
  const auto whole = [&](size_t i) { return static_cast<int64_t>(elements(results[i])[0]); };
  outcome.executed = whole(1);
  outcome.created = whole(3);
  outcome.dropped = whole(4);
  outcome.projected_on_stop = whole(5);
  outcome.active = whole(6);
  const std::vector<double> counts = elements(results[2]);
  const auto columns = static_cast<size_t>(results[2].shape()[1]);
  for (size_t step = 0; step < static_cast<size_t>(outcome.executed); ++step)
    outcome.counts.emplace_back(counts.begin() + static_cast<std::ptrdiff_t>(step * columns),
                                counts.begin() + static_cast<std::ptrdiff_t>((step + 1) * columns));
  return outcome;
}

inline void expect_equal(const Outcome& found, const reference::Trajectory& expected,
                         double tolerance) {
  ASSERT_EQ(found.executed, std::ssize(expected.steps));
  for (size_t i = 0; i < expected.steps.size(); ++i) {
    const reference::StepCounts& s = expected.steps[i];
    std::vector<int64_t> counts = {s.in,     s.exits, s.projected, s.reflected,
                                   s.wanted, s.made,  s.out};
    if (found.counts[i].size() > counts.size())
      counts.insert(counts.end(), {s.dead_energy, s.dead_backward, s.dead_bounds});
    EXPECT_EQ(found.counts[i], counts) << "step " << i;
  }
  EXPECT_EQ(found.created, expected.created);
  EXPECT_EQ(found.dropped, expected.dropped);
  EXPECT_EQ(found.projected_on_stop, expected.projected_on_stop);
  ASSERT_EQ(found.surface.size(), expected.surface.size());
  for (size_t i = 0; i < found.surface.size(); ++i)
    EXPECT_NEAR(found.surface[i], expected.surface[i], tolerance) << i;
}

inline void expect_as_reference(const reference::Lattice& lattice,
                                const reference::Networks& networks,
                                const std::vector<double>& energies, double tolerance = 1e-12) {
  const int64_t samples = std::ssize(energies) / (lattice.width * lattice.height);
  expect_equal(run(options_of(lattice), networks, energies, samples),
               reference::run(lattice, networks, energies), tolerance);
}

struct Gradients {
  double loss = 0;
  std::vector<std::vector<double>> of;  ///< by input
};

/// Of mean((surface - 0.1 cos(0.2 i))^2).
inline Gradients gradients(const LatticeOptions& options, reference::Networks networks,
                           const std::vector<double>& energies, int64_t samples,
                           const EvaluateGraph& evaluate_graph = evaluate_all) {
  const size_t layers = networks.gru.size();
  const std::vector<Literal> results =
      evaluate_graph(inputs_of(networks, energies, samples),
                     [&](GraphBuilder& builder, const std::vector<Tensor>& inputs) {
                       const FlowRun flows = run_flows(
                           options, rule_of(options, weights_of(inputs, layers)), inputs.back(),
                           static_cast<int64_t>(layers), networks.hidden());
                       const Tensor flat = reshape(flows.surface, {std::ssize(energies)});
                       const Tensor error = flat - 0.1 * cos(0.2 * iota(builder, flat.type(), 0));
                       const Tensor loss = reduce_mean(error * error, {0});
                       std::vector<Tensor> outputs = {loss};
                       for (const Tensor& gradient : gradient(loss, inputs))
                         outputs.push_back(gradient);
                       return outputs;
                     });
  Gradients found{elements(results[0])[0], {}};
  for (size_t i = 1; i < results.size(); ++i) found.of.push_back(elements(results[i]));
  return found;
}

}  // namespace fullbore::energy_flow
