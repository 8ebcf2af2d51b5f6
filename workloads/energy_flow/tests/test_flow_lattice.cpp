// The compiled lattice against the loop over flows, in double precision.
#include "workloads/energy_flow/flow_lattice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "fullbore/autodiff/backward.h"
#include "fullbore/base/error.h"
#include "tests/support/evaluate.h"
#include "workloads/energy_flow/tests/flow_reference.h"
#include "workloads/energy_flow/tests/test_weights.h"

namespace fullbore::energy_flow {
namespace {

using ::testing::HasSubstr;

LatticeOptions options_of(const reference::Lattice& lattice) {
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
std::vector<Literal> inputs_of(reference::Networks& networks, const std::vector<double>& energies,
                               int64_t samples) {
  std::vector<Literal> inputs;
  for (const reference::Matrix* matrix : networks.matrices())
    inputs.push_back(
        reals(matrix->columns == 1 ? Shape{matrix->rows} : Shape{matrix->rows, matrix->columns},
              matrix->elements));
  inputs.push_back(reals({samples, std::ssize(energies) / samples}, energies));
  return inputs;
}

NetworkWeights weights_of(const std::vector<Tensor>& inputs, size_t layers) {
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
    const TensorType type{DType::f64, {weights.neuron[0].weight.dim(0)}};
    norm = {full(inputs[0].builder(), type, 1), full(inputs[0].builder(), type, 0)};
  }
  return weights;
}

FlowRule rule_of(const LatticeOptions& options, const NetworkWeights& weights) {
  return options.mode == FlowMode::relative ? relative_rule(options, weights)
                                            : absolute_rule(options, weights);
}

struct Outcome {
  std::vector<double> surface;
  int64_t executed = 0;
  std::vector<std::vector<int64_t>> counts;  ///< by step
  int64_t created = 0, dropped = 0, projected_on_stop = 0, active = 0;
};

Outcome run(const LatticeOptions& options, reference::Networks networks,
            const std::vector<double>& energies, int64_t samples) {
  const size_t layers = networks.gru.size();
  const std::vector<Literal> results =
      evaluate_all(inputs_of(networks, energies, samples),
                   [&](GraphBuilder&, const std::vector<Tensor>& inputs) {
                     const FlowRun flows =
                         run_flows(options, rule_of(options, weights_of(inputs, layers)),
                                   inputs.back(), static_cast<int64_t>(layers), networks.hidden());
                     return std::vector<Tensor>{
                         flows.surface, flows.executed,          flows.counts, flows.created,
                         flows.dropped, flows.projected_on_stop, flows.active};
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

void expect_equal(const Outcome& found, const reference::Trajectory& expected, double tolerance) {
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

void expect_as_reference(const reference::Lattice& lattice, const reference::Networks& networks,
                         const std::vector<double>& energies, double tolerance = 1e-12) {
  const int64_t samples = std::ssize(energies) / (lattice.width * lattice.height);
  expect_equal(run(options_of(lattice), networks, energies, samples),
               reference::run(lattice, networks, energies), tolerance);
}

TEST(FlowLattice, A3_TheRunOfM1) {
  expect_as_reference(reference::m1(), reference::test_networks({}), reference::test_energies(90));
  reference::Lattice linear = reference::m1();
  linear.readout = reference::Readout::linear;
  expect_as_reference(linear, reference::test_networks({}), reference::test_energies(90));
}

TEST(FlowLattice, A4_Capacity) {
  for (const int64_t capacity : {100, 80}) {
    reference::Lattice lattice = reference::m1();
    lattice.capacity = capacity;
    expect_as_reference(lattice, reference::test_networks({}), reference::test_energies(90));
  }
  LatticeOptions options = options_of(reference::m1());
  options.capacity = 80;
  options.inject_overflow = InjectOverflow::error;
  EXPECT_THAT(usage_error([&] { require_lattice(options, 2); }),
              HasSubstr("there is room for 80: at least 90 was expected"));
}

TEST(FlowLattice, A5_StopsInM1) {
  for (const reference::StopRule& rule :
       {reference::StopRule{true, 0.95, 2, 1, false}, reference::StopRule{true, 0.03, 9, 1, false},
        reference::StopRule{true, 0.05, 9, 1, false},
        reference::StopRule{true, 0.05, 9, 1, true}}) {
    reference::Lattice lattice = reference::m1();
    lattice.stop = rule;
    expect_as_reference(lattice, reference::test_networks({}), reference::test_energies(90));
  }
}

TEST(FlowLattice, A11_TheRunOfModeA) {
  for (const int64_t capacity : {1000, 70}) {
    reference::Lattice lattice = reference::mode_a();
    lattice.capacity = capacity;
    expect_as_reference(lattice, reference::test_networks({.first = 2}),
                        reference::test_energies(60));
  }
}

}  // namespace
}  // namespace fullbore::energy_flow
