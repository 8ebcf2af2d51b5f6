// A rule that is none of ours: what the lattice does with flows does not depend on how they move.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "fullbore/autodiff/backward.h"
#include "tests/support/evaluate.h"
#include "workloads/energy_flow/examples/spiral_rule.h"
#include "workloads/energy_flow/flow_lattice.h"

namespace fullbore::energy_flow {
namespace {

constexpr int64_t kSamples = 2;

LatticeOptions small(int64_t capacity) {
  LatticeOptions options;
  options.width = 5;
  options.height = 4;
  options.depth = 8;
  options.capacity = capacity;
  options.most_spawned = 1;
  options.stop.on = false;
  return options;
}

std::vector<Literal> inputs() {
  std::vector<double> map(25), energies(static_cast<size_t>(kSamples * 20));
  for (size_t i = 0; i < map.size(); ++i)
    map[i] = 0.9 * std::sin(1.3 * static_cast<double>(i) + 0.4);
  for (size_t i = 0; i < energies.size(); ++i)
    energies[i] = 0.9 * std::sin(0.31 + 0.77 * static_cast<double>(i));
  map[14] = 0;
  map[24] += 0.7;  // most are warm
  return {reals({5, 5}, map), reals({kSamples, 20}, energies)};
}

FlowRun run(const LatticeOptions& options, const std::vector<Tensor>& given) {
  return run_flows(options, spiral_rule(options, {given[0]}, 0.3), given[1], 0, 0);
}

/// The loss, and its gradients by both inputs.
std::vector<Literal> loss_and_gradients(const LatticeOptions& options,
                                        const std::vector<Literal>& given) {
  return evaluate_all(given, [&](GraphBuilder& builder, const std::vector<Tensor>& tensors) {
    const Tensor surface = run(options, tensors).surface;
    const Tensor error =
        surface -
        0.1 * cos(0.2 * cast(iota(builder, {DType::i64, surface.shape()}, 1), DType::f64));
    const Tensor loss = reduce_mean(error * error, {0, 1});
    std::vector<Tensor> outputs = {loss};
    for (const Tensor& each : gradient(loss, tensors)) outputs.push_back(each);
    return outputs;
  });
}

TEST(OwnRule, FlowsAreConserved) {
  const LatticeOptions options = small(60);
  const std::vector<Literal> results =
      evaluate_all(inputs(), [&](GraphBuilder&, const std::vector<Tensor>& given) {
        const FlowRun flows = run(options, given);
        EXPECT_THAT(flows.causes, ::testing::ElementsAre("frozen"));
        return std::vector<Tensor>{flows.counts, flows.executed, flows.created, flows.dropped,
                                   flows.active};
      });
  const auto steps = static_cast<size_t>(elements(results[1])[0]);
  const std::vector<double> counts = elements(results[0]);
  const auto columns = static_cast<size_t>(results[0].shape()[1]);
  const auto count = [&](size_t step, FlowCount what) {
    return counts[step * columns + static_cast<size_t>(what)];
  };
  double exits = 0, dead = 0, made = 0, wanted = 0, in = kSamples * 20;
  for (size_t step = 0; step < steps; ++step) {
    EXPECT_EQ(count(step, FlowCount::in), in) << step;
    EXPECT_EQ(count(step, FlowCount::out), in - count(step, FlowCount::exits) -
                                               count(step, FlowCount::dead) +
                                               count(step, FlowCount::made));
    in = count(step, FlowCount::out);
    exits += count(step, FlowCount::exits);
    dead += count(step, FlowCount::dead);
    made += count(step, FlowCount::made);
    wanted += count(step, FlowCount::wanted);
  }
  const double created = elements(results[2])[0], dropped = elements(results[3])[0];
  EXPECT_EQ(created, kSamples * 20 + made);
  EXPECT_EQ(created, exits + dead + elements(results[4])[0]);
  EXPECT_EQ(wanted, made + dropped);
  // All that the rule knows of occurs.
  EXPECT_GT(exits, 0);
  EXPECT_GT(dead, 0);
  EXPECT_GT(made, 0);
  EXPECT_GT(dropped, 0);
}

TEST(OwnRule, HasGradientsWithAndWithoutOverflow) {
  for (const int64_t capacity : {60, 200}) {
    const LatticeOptions options = small(capacity);
    const std::vector<Literal> results = loss_and_gradients(options, inputs());
    for (size_t input : {0U, 1U}) {
      const std::vector<double> found = elements(results[1 + input]);
      double largest = 0;
      for (size_t i = 0; i < found.size(); i += 3) {
        constexpr double kStep = 1e-6;
        double losses[2];
        for (int side : {0, 1}) {
          std::vector<Literal> moved = inputs();
          std::vector<double> values = elements(moved[input]);
          values[i] += side == 0 ? -kStep : kStep;
          moved[input] = reals(moved[input].shape(), values);
          losses[side] = elements(loss_and_gradients(options, moved)[0])[0];
        }
        EXPECT_NEAR(found[i], (losses[1] - losses[0]) / (2 * kStep), 1e-6)
            << "input " << input << " element " << i << " capacity " << capacity;
        largest = std::max(largest, std::abs(found[i]));
      }
      EXPECT_GT(largest, 1e-4);
    }
  }
}

}  // namespace
}  // namespace fullbore::energy_flow
