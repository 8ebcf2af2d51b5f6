// The reference holds the figures of the workload's specification, section 11: what the compiled model is compared with
// is right.
#include "workloads/energy_flow/tests/flow_reference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "workloads/energy_flow/tests/test_weights.h"

namespace fullbore::energy_flow::reference {
namespace {

using ::testing::ElementsAre;

Trajectory run_m1(const Lattice& lattice,
                  const std::function<void(int64_t, const Flow&)>& watch = {}) {
  return run(lattice, test_networks({}), test_energies(90), watch);
}
Trajectory run_a(const Lattice& lattice,
                 const std::function<void(int64_t, const Flow&)>& watch = {}) {
  return run(lattice, test_networks({.first = 2}), test_energies(60), watch);
}

double sum(const std::vector<double>& values) {
  double result = 0;
  for (const double value : values) result += value;
  return result;
}
double squares(const std::vector<double>& values) {
  double result = 0;
  for (const double value : values) result += value * value;
  return result;
}

void expect_near(const std::vector<double>& found, const std::vector<double>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-6) << i;
}

void expect_conserved(const Lattice& lattice, const Trajectory& t) {
  int64_t active = t.injected, exits = 0, projected = 0, dead = 0, made = 0, dropped = 0;
  for (const StepCounts& step : t.steps) {
    EXPECT_EQ(step.in, active);
    active = step.out;
    exits += step.exits;
    projected += step.projected;
    dead += step.dead_energy + step.dead_backward + step.dead_bounds;
    made += step.made;
    dropped += step.wanted - step.made;
    EXPECT_EQ(t.injected + made, exits + projected + dead + active);
    EXPECT_LE(active, lattice.capacity);
  }
  EXPECT_EQ(t.injected + made, t.created);
  EXPECT_EQ(dropped, t.dropped);
  EXPECT_EQ(std::ssize(t.records), t.exits + t.projected + t.projected_on_stop);
}

TEST(FlowReference, A1_ASingleStep) {
  const Networks networks = test_networks({});
  const double p[3] = {0.5, -0.25, 0.1};
  const std::vector<std::vector<double>> none(2, std::vector<double>(4));
  const Answer first = ask(networks, Mode::relative, p, 0.3, none);
  expect_near(first.features, {2.039436276, -2.418494195, 3.016287983});
  expect_near(first.hidden[0], {-0.080271046, 0.739259027, -0.385862144, 0.189219252});
  expect_near(first.hidden[1], {-0.092402411, 0.205471514, -0.234090100, 0.418252250});
  EXPECT_NEAR(first.energy, -0.447391758, 1e-6);
  expect_near({first.displacement, first.displacement + 3},
              {0.102347750, 0.032964511, 0.238529846});
  const Answer second = ask(networks, Mode::relative, p, first.energy, first.hidden);
  EXPECT_NEAR(second.energy, -0.752633364, 1e-6);
  expect_near({second.displacement, second.displacement + 3},
              {0.042781693, 0.043991362, 0.278319060});
}

TEST(FlowReference, A3_TheRunOfM1) {
  std::map<int64_t, std::vector<Flow>> seen;
  const Trajectory t =
      run_m1(m1(), [&](int64_t, const Flow& flow) { seen[flow.id].push_back(flow); });
  const std::vector<std::vector<int64_t>> expected = {{90, 0, 0, 30, 0, 0, 90},
                                                      {90, 0, 0, 31, 19, 19, 109},
                                                      {109, 5, 0, 45, 22, 22, 126},
                                                      {126, 23, 67, 59, 33, 33, 69}};
  ASSERT_EQ(t.steps.size(), 4U);
  for (size_t i = 0; i < 4; ++i) {
    const StepCounts& s = t.steps[i];
    EXPECT_THAT(
        (std::vector<int64_t>{s.in, s.exits, s.projected, s.reflected, s.wanted, s.made, s.out}),
        ::testing::ElementsAreArray(expected[i]))
        << i;
  }
  EXPECT_EQ(t.created, 164);
  EXPECT_EQ(t.exits, 28);
  EXPECT_EQ(t.projected, 67);
  EXPECT_EQ(t.projected_on_stop, 69);
  int64_t planes[2] = {};
  for (size_t i = 0; i < t.records.size(); ++i)
    if (t.records[i].distance == 0) ++planes[t.records[i].plane];
  EXPECT_THAT(planes, ElementsAre(14, 14));
  EXPECT_NEAR(sum(t.surface), -17.404141490, 1e-6);
  EXPECT_NEAR(squares(t.surface), 17.247942636, 1e-6);
  EXPECT_EQ(std::ranges::count_if(t.surface, [](double v) { return v != 0; }), 55);
  expect_near({t.surface.begin() + 45 + 18, t.surface.begin() + 45 + 27},
              {0.473977702, 0.544638008, 0.169305900, -0.991580214, -0.562528594, -0.091453336,
               -0.262918669, -0.180117700, 0});
  const std::vector<std::vector<double>> places = {{-0.876826984, -0.938499581, 0.166524948},
                                                   {-0.842658844, -0.480717685, 0.025999583},
                                                   {-0.657341156, 0.019282315, -0.474000417}};
  const std::vector<double> energies = {-0.584995090, -0.999976025, 0.427483992};
  ASSERT_EQ(seen[0].size(), 3U);  // it is projected by the fourth step
  for (size_t i = 0; i < 3; ++i) {
    expect_near({seen[0][i].p, seen[0][i].p + 3}, places[i]);
    EXPECT_NEAR(seen[0][i].energy, energies[i], 1e-6);
  }
  EXPECT_GT(t.least_margin, 4e-4);
  expect_conserved(m1(), t);

  Lattice linear = m1();
  linear.readout = Readout::linear;
  EXPECT_NEAR(sum(run_m1(linear).surface), -19.200617482, 1e-6);
  EXPECT_NEAR(squares(run_m1(linear).surface), 19.671566224, 1e-6);
}

TEST(FlowReference, A2_AConstantDisplacement) {
  Networks zero = test_networks({});
  for (Matrix* matrix : zero.matrices()) std::ranges::fill(matrix->elements, 0);
  struct Case {
    std::vector<double> d;
    int64_t depth;
    double age, distance;
    int plane;
  };
  for (const Case& each :
       {Case{{0.3, -0.25, 0.4}, 20, 3, 0, 1}, Case{{0.3, -0.25, -0.07}, 8, 4, 0.72, 0},
        Case{{0.9, 0, 0}, 6, 3, 1, 0}}) {
    zero.displacement2.bias.elements = each.d;
    const Lattice lattice{.width = 11,
                          .height = 21,
                          .depth = each.depth,
                          .most_steps = each.depth / 2,
                          .spawn_threshold = 9};
    // The cell at (0.8, -0.9): x = 9 of 0..10, y = 1 of 0..20. All flows move alike.
    const Trajectory t = run(lattice, zero, std::vector<double>(231, 1.0));
    ASSERT_EQ(t.records.size(), 231U);
    EXPECT_EQ(t.records.front().age, each.age);
    EXPECT_NEAR(t.records.front().distance, each.distance, 1e-12);
    EXPECT_EQ(t.records.front().plane, each.plane);
  }
}

TEST(FlowReference, A4_ACapacity) {
  Lattice lattice = m1();
  lattice.capacity = 100;
  const Trajectory t = run_m1(lattice);
  std::vector<std::pair<int64_t, int64_t>> made;
  for (const StepCounts& step : t.steps) made.emplace_back(step.wanted, step.made);
  EXPECT_THAT(made,
              ElementsAre(std::pair(0, 0), std::pair(19, 10), std::pair(12, 5), std::pair(10, 10)));
  EXPECT_EQ(t.created, 115);
  EXPECT_EQ(t.exits, 24);
  EXPECT_EQ(t.projected, 67);
  EXPECT_EQ(t.projected_on_stop, 24);
  EXPECT_EQ(t.dropped, 16);
  EXPECT_NEAR(sum(t.surface), -18.952185357, 1e-6);
  EXPECT_NEAR(squares(t.surface), 14.681905921, 1e-6);
  expect_conserved(lattice, t);

  lattice.capacity = 80;
  const Trajectory cut = run_m1(lattice);
  EXPECT_EQ(cut.not_injected, 10);
  EXPECT_EQ(cut.created, 90);
  EXPECT_EQ(cut.dropped, 24);
  EXPECT_NEAR(sum(cut.surface), -16.098353560, 1e-6);

  Lattice absolute = mode_a();
  absolute.capacity = 70;
  const Trajectory a = run_a(absolute);
  EXPECT_EQ(a.dropped, 14);
  EXPECT_EQ(a.created, 78);
  EXPECT_EQ(a.exits, 25);
  EXPECT_NEAR(sum(a.surface), -0.946452877, 1e-6);
}

TEST(FlowReference, A5_StopsInM1) {
  struct Case {
    StopRule rule;
    size_t steps;
    std::string reason;
  };
  for (const Case& each :
       {Case{{true, 0.95, 2, 1, false}, 2, "patience"},
        Case{{true, 0.03, 9, 1, false}, 3, "threshold"}, Case{{true, 0.05, 9, 1, false}, 4, ""},
        Case{{true, 0.05, 9, 1, true}, 3, "threshold"}}) {
    Lattice lattice = m1();
    lattice.stop = each.rule;
    const Trajectory t = run_m1(lattice);
    EXPECT_EQ(t.steps.size(), each.steps);
    EXPECT_EQ(t.stop_reason, each.reason);
    if (each.steps != 2) continue;
    EXPECT_EQ(t.projected_on_stop, 109);
    EXPECT_NEAR(sum(t.surface), -43.406492894, 1e-6);
  }
}

TEST(FlowReference, A7_StopSequences) {
  const auto stops = [](const StopRule& rule, const std::vector<int64_t>& completed) {
    StopDecision decision(rule);
    for (int step = 0;; ++step) {
      const size_t at = std::min(static_cast<size_t>(step), completed.size() - 1);
      const std::string reason = decision.before(step, 1, completed[at], 100);
      if (!reason.empty()) return std::pair(step, reason);
    }
  };
  const std::vector<int64_t> grows = {0, 0, 10, 40, 80, 96, 99};
  EXPECT_EQ(stops({true, 0.95, 3, 5}, grows), std::pair(5, std::string("threshold")));
  EXPECT_EQ(stops({true, 0.95, 5, 10}, grows), std::pair(10, std::string("threshold")));
  EXPECT_EQ(stops({true, 0.995, 3, 5}, grows), std::pair(9, std::string("patience")));
  EXPECT_EQ(stops({true, 0.95, 3, 5}, {0}), std::pair(7, std::string("patience")));
  EXPECT_EQ(stops({true, 0.95, 5, 10}, {0}), std::pair(14, std::string("patience")));
}

TEST(FlowReference, A8_Gradients) {
  Networks networks = test_networks({});
  const std::vector<double> energies = test_energies(90);
  const auto loss = [&](const Lattice& lattice) {
    const Trajectory t = run(lattice, networks, energies);
    double result = 0;
    for (size_t i = 0; i < t.surface.size(); ++i) {
      const double error = t.surface[i] - 0.1 * std::cos(0.2 * static_cast<double>(i));
      result += error * error / static_cast<double>(t.surface.size());
    }
    return result;
  };
  const auto slope = [&](double& weight) {
    constexpr double kStep = 1e-6;
    const double kept = weight;
    weight = kept + kStep;
    const double up = loss(m1());
    weight = kept - kStep;
    const double down = loss(m1());
    weight = kept;
    return (up - down) / (2 * kStep);
  };
  EXPECT_NEAR(loss(m1()), 0.192774280, 1e-8);
  expect_near({slope(networks.displacement2.bias.elements[0]),
               slope(networks.displacement2.bias.elements[1]),
               slope(networks.displacement2.bias.elements[2])},
              {-2.138206819, 0.327876656, 2.092402225});
  EXPECT_NEAR(slope(networks.energy2.bias.elements[0]), -0.855676899, 1e-6);
  EXPECT_NEAR(slope(networks.gru[0].weight_ih.elements[0]), 0.075679991, 1e-6);
  EXPECT_NEAR(slope(networks.gru[0].weight_hh.elements[9 * 4 + 2]), 0.124283325, 1e-6);
  EXPECT_NEAR(slope(networks.coordinates.weight.elements[0]), 0.435887682, 1e-6);
  Lattice stopped = m1();
  stopped.stop = {true, 0.03, 9, 1, false};
  EXPECT_NEAR(loss(stopped), 0.168164592, 1e-8);
  Lattice full = m1();
  full.capacity = 100;
  EXPECT_NEAR(loss(full), 0.164920618, 1e-8);
}

TEST(FlowReference, A9_SpawnCounts) {
  const auto lengths = [](double threshold, int64_t most) {
    std::vector<int64_t> counts;
    for (const double length : {0.05, 0.12, 0.2, 0.299, 0.31, 0.45, 0.58, 0.86})
      counts.push_back(children_of_length(length, threshold, most));
    return counts;
  };
  EXPECT_THAT(lengths(0.15, 1), ElementsAre(0, 0, 0, 0, 1, 1, 1, 1));
  EXPECT_THAT(lengths(0.1, 3), ElementsAre(0, 0, 1, 1, 2, 3, 3, 3));
  EXPECT_THAT(lengths(0.5, 1), ElementsAre(0, 0, 0, 0, 0, 0, 0, 0));
  EXPECT_THAT(lengths(0.28, 2), ElementsAre(0, 0, 0, 0, 0, 0, 1, 2));
  std::vector<int64_t> gates;
  for (const double gate : {0.55, 0.6, 0.601, 0.7, 0.74, 0.87, 1.0})
    gates.push_back(children_of_gate(gate, 0.6, 3));
  EXPECT_THAT(gates, ElementsAre(0, 0, 1, 1, 2, 3, 3));
}

TEST(FlowReference, A10_Readouts) {
  std::vector<ExitRecord> records = {{0, 0, 0.8, 3, 0}, {0, 0, -0.5, 5, 0}, {0, 0, 0.2, 2, 0.4}};
  EXPECT_NEAR(merged(records, Readout::linear), 0.248768473, 1e-6);
  EXPECT_NEAR(merged(records, Readout::softmax), 0.235157768, 1e-6);
  for (ExitRecord& record : records) record.energy = 0;
  EXPECT_EQ(merged(records, Readout::linear), 0);
  EXPECT_EQ(merged(records, Readout::softmax), 0);
}

TEST(FlowReference, A11_TheRunOfModeA) {
  std::vector<Flow> seen;
  const Trajectory t = run_a(mode_a(), [&](int64_t, const Flow& flow) {
    if (flow.id == 29) seen.push_back(flow);
  });
  const std::vector<std::vector<int64_t>> expected = {{60, 1, 0, 0, 4, 29, 84},
                                                      {84, 23, 12, 0, 14, 3, 38},
                                                      {38, 7, 21, 0, 9, 0, 1},
                                                      {1, 0, 1, 0, 0, 0, 0}};
  ASSERT_EQ(t.steps.size(), 4U);
  for (size_t i = 0; i < 4; ++i) {
    const StepCounts& s = t.steps[i];
    EXPECT_THAT((std::vector<int64_t>{s.in, s.dead_energy, s.dead_backward, s.dead_bounds, s.exits,
                                      s.made, s.out}),
                ::testing::ElementsAreArray(expected[i]))
        << i;
  }
  EXPECT_EQ(t.stop_reason, "empty");
  EXPECT_EQ(t.created, 92);
  EXPECT_NEAR(sum(t.surface), -0.949407513, 1e-6);
  EXPECT_NEAR(squares(t.surface), 0.451979488, 1e-6);
  EXPECT_EQ(std::ranges::count_if(t.surface, [](double v) { return v != 0; }), 2);
  ASSERT_EQ(seen.size(), 2U);
  expect_near({seen[0].p, seen[0].p + 3}, {3, 2, 3});
  expect_near({seen[1].p, seen[1].p + 3}, {4, 1, 5});
  EXPECT_NEAR(seen[0].energy, 0.125884355, 1e-6);
  EXPECT_NEAR(seen[1].energy, -0.245957600, 1e-6);
  expect_conserved(mode_a(), t);
}

}  // namespace
}  // namespace fullbore::energy_flow::reference
