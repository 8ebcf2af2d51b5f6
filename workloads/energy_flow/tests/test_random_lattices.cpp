// A6: random lattices, networks and energies, in both modes, with and without overflow and stop rules.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "workloads/energy_flow/tests/compiled_lattice.h"

namespace fullbore::energy_flow {
namespace {

struct RandomCase {
  reference::Lattice lattice;
  reference::Networks networks;
  std::vector<double> energies;
  int64_t samples = 0;
};

class Draws {
 public:
  explicit Draws(uint64_t seed) : engine_(seed) {}
  int64_t whole(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(engine_() % static_cast<uint64_t>(high - low + 1));
  }
  double real(double low, double high) {
    return low + (high - low) * std::ldexp(static_cast<double>(engine_() >> 11), -53);
  }
  bool truth() { return whole(0, 1) == 1; }
  double normal() {
    const double u = 1 - real(0, 1), v = real(0, 1);
    return std::sqrt(-2 * std::log(u)) * std::cos(2 * M_PI * v);
  }
  reference::Matrix matrix(int64_t rows, int64_t columns, double deviation) {
    reference::Matrix result{rows, columns, {}};
    for (int64_t i = 0; i < rows * columns; ++i) result.elements.push_back(deviation * normal());
    return result;
  }
  reference::Linear linear(int64_t rows, int64_t columns, double deviation) {
    return {matrix(rows, columns, deviation), matrix(rows, 1, 0.3)};
  }

 private:
  std::mt19937_64 engine_;
};

reference::Networks random_networks(Draws& draws) {
  const int64_t hidden = 2 * draws.whole(1, 3), wide = draws.whole(2, 5),
                outputs = draws.whole(1, 4);
  const double deviation = draws.real(0.5, 1.5);
  reference::Networks n;
  n.coordinates = draws.linear(3, 3, 2);
  n.neuron1 = draws.linear(wide, 4, 2);
  n.neuron2 = draws.linear(wide, wide, deviation);
  n.neuron3 = draws.linear(outputs, wide, deviation);
  const int64_t layers = draws.whole(1, 3);
  for (int64_t layer = 0; layer < layers; ++layer)
    n.gru.push_back({draws.matrix(3 * hidden, layer == 0 ? outputs + 1 : hidden, deviation),
                     draws.matrix(3 * hidden, hidden, deviation), draws.matrix(3 * hidden, 1, 0.3),
                     draws.matrix(3 * hidden, 1, 0.3)});
  n.energy1 = draws.linear(hidden / 2, hidden, deviation);
  n.energy2 = draws.linear(1, hidden / 2, deviation);
  n.displacement1 = draws.linear(wide, hidden, deviation);
  n.displacement2 = draws.linear(3, wide, 0.3);
  n.position1 = draws.linear(wide, hidden, deviation);
  n.position2 = draws.linear(3, wide, 1);
  n.gate1 = draws.linear(wide, hidden, deviation);
  n.gate2 = draws.linear(1, wide, 2);
  n.spawn_energy = draws.linear(1, hidden, deviation);
  return n;
}

RandomCase random_case(Draws& draws) {
  RandomCase c;
  reference::Lattice& lattice = c.lattice;
  const bool relative = draws.truth();
  lattice.mode = relative ? reference::Mode::relative : reference::Mode::absolute;
  lattice.width = draws.whole(2, 6);
  lattice.height = draws.whole(2, 5);
  lattice.depth = relative ? 2 * draws.whole(1, 5) : draws.whole(3, 9);
  lattice.most_steps = relative ? lattice.depth / 2 : lattice.depth;
  lattice.spawn_threshold = relative ? draws.real(0.05, 0.4) : draws.real(0.3, 0.8);
  lattice.most_spawned = draws.whole(0, 3);
  lattice.energy_threshold = draws.real(0, 0.2);
  lattice.project_on_stop = draws.truth();
  lattice.readout = draws.truth() ? reference::Readout::softmax : reference::Readout::linear;
  lattice.stop.on = draws.truth();
  lattice.stop.threshold = draws.real(0.05, 1);
  lattice.stop.patience = static_cast<int>(draws.whole(1, 4));
  lattice.stop.min_steps = static_cast<int>(draws.whole(1, 4));
  lattice.stop.of_initial = draws.truth();
  c.samples = draws.whole(1, 3);
  const int64_t flows = c.samples * lattice.width * lattice.height;
  lattice.capacity = draws.truth() ? 250 : draws.whole(flows / 2 + 1, 2 * flows);
  c.networks = random_networks(draws);
  for (int64_t i = 0; i < flows; ++i) c.energies.push_back(draws.real(-1, 1));
  return c;
}

/// Calls visit(case) for so many whose decisions are not within `margin` of turning out otherwise.
template <class Visit>
void for_each_case(uint64_t seed, int count, double margin, const Visit& visit) {
  Draws draws(seed);
  int modes[2] = {}, dropped = 0, stopped = 0;
  for (int done = 0; done < count;) {
    const RandomCase c = random_case(draws);
    const reference::Trajectory trajectory = reference::run(c.lattice, c.networks, c.energies);
    if (trajectory.least_margin < margin) continue;
    ++modes[c.lattice.mode == reference::Mode::relative ? 0 : 1];
    dropped += trajectory.dropped + trajectory.not_injected > 0 ? 1 : 0;
    stopped += !trajectory.stop_reason.empty() ? 1 : 0;
    SCOPED_TRACE(::testing::Message() << "case " << done << " of seed " << seed);
    visit(c, trajectory, draws);
    ++done;
    if (::testing::Test::HasFailure()) return;
  }
  // All that is to be tested occurs.
  EXPECT_GT(modes[0], count / 5);
  EXPECT_GT(modes[1], count / 5);
  EXPECT_GT(dropped, count / 10);
  EXPECT_GT(stopped, count / 10);
}

TEST(RandomLattices, AreEqualToTheLoopOverFlows) {
  for_each_case(1, 200, 1e-9,
                [](const RandomCase& c, const reference::Trajectory& expected, Draws&) {
                  expect_equal(run(options_of(c.lattice), c.networks, c.energies, c.samples),
                               expected, 1e-12);
                });
}

// Of whatever a capacity is divided into.
TEST(RandomLattices, ThatMoveTilesOfFlowsAreEqualToTheLoopOverFlows) {
  for_each_case(5, 100, 1e-9,
                [](const RandomCase& c, const reference::Trajectory& expected, Draws& draws) {
                  LatticeOptions options = options_of(c.lattice);
                  options.tile_rows = draws.whole(1, 60);
                  expect_equal(run(options, c.networks, c.energies, c.samples), expected, 1e-12);
                });
}

// A12: what comes in goes out.
TEST(RandomLattices, LoseNoFlow) {
  for_each_case(2, 60, 0, [](const RandomCase& c, const reference::Trajectory&, Draws&) {
    const Outcome outcome = run(options_of(c.lattice), c.networks, c.energies, c.samples);
    int64_t injected = std::min(std::ssize(c.energies), c.lattice.capacity), active = injected;
    int64_t made = 0, wanted = 0, ended = 0;
    for (const std::vector<int64_t>& counts : outcome.counts) {
      EXPECT_EQ(counts[0], active);
      active = counts[6];
      wanted += counts[4];
      made += counts[5];
      ended += counts[1] + counts[2];
      for (size_t cause = 7; cause < counts.size(); ++cause) ended += counts[cause];
      EXPECT_EQ(injected + made, ended + active);
      EXPECT_LE(active, c.lattice.capacity);
    }
    EXPECT_EQ(outcome.created, injected + made);
    EXPECT_EQ(outcome.dropped, wanted - made);
    EXPECT_EQ(outcome.active, active);
    EXPECT_EQ(outcome.projected_on_stop, c.lattice.project_on_stop ? active : 0);
  });
}

double loss_of(const RandomCase& c) {
  const std::vector<double> surface = reference::run(c.lattice, c.networks, c.energies).surface;
  double loss = 0;
  for (size_t i = 0; i < surface.size(); ++i) {
    const double error = surface[i] - 0.1 * std::cos(0.2 * static_cast<double>(i));
    loss += error * error / static_cast<double>(surface.size());
  }
  return loss;
}

/// The slope along a direction, by differences that are extrapolated to a step of zero (Richardson).
double slope(const RandomCase& c, const std::vector<std::vector<double>>& direction) {
  const auto difference = [&](double step) {
    double values[2];
    for (const int side : {0, 1}) {
      RandomCase moved = c;
      const std::vector<reference::Matrix*> matrices = moved.networks.matrices();
      const auto move = [&](std::vector<double>& values_of, const std::vector<double>& along) {
        for (size_t i = 0; i < along.size(); ++i)
          values_of[i] += (side == 0 ? step : -step) * along[i];
      };
      for (size_t m = 0; m < matrices.size(); ++m) move(matrices[m]->elements, direction[m]);
      move(moved.energies, direction.back());
      values[side] = loss_of(moved);
    }
    return (values[0] - values[1]) / (2 * step);
  };
  constexpr double kStep = 2e-5;
  return (4 * difference(kStep / 2) - difference(kStep)) / 3;
}

TEST(RandomLattices, HaveTheGradientsOfDifferences) {
  for_each_case(3, 200, 1e-3, [](const RandomCase& c, const reference::Trajectory&, Draws& draws) {
    const Gradients found = gradients(options_of(c.lattice), c.networks, c.energies, c.samples);
    ASSERT_NEAR(found.loss, loss_of(c), 1e-12);
    std::vector<std::vector<double>> direction;
    double expected = 0, size = 0;
    for (const std::vector<double>& gradient : found.of) {
      std::vector<double>& along = direction.emplace_back();
      for (const double element : gradient) {
        along.push_back(draws.normal() / 10);
        expected += element * along.back();
        size += std::abs(element * along.back());
      }
    }
    EXPECT_NEAR(slope(c, direction), expected, 1e-6 * std::max(size, 1e-2));
  });
}

// A sample that stops by its own rule is what it would be without companions.
TEST(RandomLattices, SamplesThatStopByThemselvesAreIndependent) {
  Draws draws(4);
  int done = 0;
  for (int i = 0; i < 60; ++i) {
    RandomCase c = random_case(draws);
    c.lattice.stop.on = true;
    c.lattice.capacity = 250;
    LatticeOptions options = options_of(c.lattice);
    options.stop.per_sample = true;
    const Outcome together = run(options, c.networks, c.energies, c.samples);
    if (together.dropped > 0) continue;  // there companions take the room
    const auto surface = static_cast<std::ptrdiff_t>(options.surface());
    int64_t projected = 0;
    for (int64_t sample = 0; sample < c.samples; ++sample) {
      const std::vector<double> own(c.energies.begin() + sample * surface,
                                    c.energies.begin() + (sample + 1) * surface);
      const Outcome alone = run(options_of(c.lattice), c.networks, own, 1);
      projected += alone.projected_on_stop;
      for (std::ptrdiff_t cell = 0; cell < surface; ++cell)
        EXPECT_NEAR(together.surface[static_cast<size_t>(sample * surface + cell)],
                    alone.surface[static_cast<size_t>(cell)], 1e-12)
            << "case " << i << ", sample " << sample << ", cell " << cell;
    }
    EXPECT_EQ(together.projected_on_stop, projected) << "case " << i;
    ++done;
  }
  EXPECT_GT(done, 20);
}

}  // namespace
}  // namespace fullbore::energy_flow
