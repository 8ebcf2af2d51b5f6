// The compiled lattice has the figures of the specification, section 11, and is equal to the loop over flows.
#include "workloads/energy_flow/flow_lattice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "workloads/energy_flow/tests/compiled_lattice.h"
#include "workloads/energy_flow/tests/test_weights.h"

namespace fullbore::energy_flow {
namespace {

using ::testing::HasSubstr;

// Places of tensors among the inputs, as Networks::matrices() has them.
constexpr size_t kCoordinates = 0, kEnergyBias = 11, kDisplacementBias = 15, kInputs = 26,
                 kHidden = 27;

double norm_of_weights(const Gradients& gradients) {
  double squares = 0;
  for (size_t i = 0; i + 1 < gradients.of.size(); ++i)
    for (const double element : gradients.of[i]) squares += element * element;
  return std::sqrt(squares);
}
double norm(const std::vector<double>& values) {
  return std::sqrt(std::inner_product(values.begin(), values.end(), values.begin(), 0.0));
}

void expect_near(const std::vector<double>& found, const std::vector<double>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-6) << i;
}

TEST(FlowLattice, A8_Gradients) {
  const reference::Networks networks = reference::test_networks({});
  const std::vector<double> energies = reference::test_energies(90);
  LatticeOptions options = options_of(reference::m1());
  const Gradients full = gradients(options, networks, energies, 2);
  EXPECT_NEAR(full.loss, 0.192774280, 1e-8);
  EXPECT_NEAR(norm_of_weights(full), 10.010920692, 1e-6);
  EXPECT_NEAR(norm(full.of.back()), 0.714700305, 1e-6);
  expect_near(full.of[kDisplacementBias], {-2.138206819, 0.327876656, 2.092402225});
  expect_near(full.of[kEnergyBias], {-0.855676899});
  EXPECT_NEAR(full.of[kInputs][0], 0.075679991, 1e-6);
  EXPECT_NEAR(full.of[kHidden][9 * 4 + 2], 0.124283325, 1e-6);
  EXPECT_NEAR(full.of[kCoordinates][0], 0.435887682, 1e-6);

  options.importance_gradient = false;
  const Gradients detached = gradients(options, networks, energies, 2);
  EXPECT_NEAR(detached.loss, 0.192774280, 1e-8);
  EXPECT_NEAR(norm_of_weights(detached), 10.074269022, 1e-6);
  expect_near(detached.of[kDisplacementBias], {-2.196847275, 0.247569020, 2.095484918});
  expect_near(detached.of[kEnergyBias], {-0.849736183});

  LatticeOptions stopped = options;
  stopped.stop = {.on = true, .threshold = 0.03, .patience = 9, .min_steps = 1};
  const Gradients early = gradients(stopped, networks, energies, 2);
  EXPECT_NEAR(early.loss, 0.168164592, 1e-8);
  EXPECT_NEAR(norm_of_weights(early), 1.784620586, 1e-6);
  expect_near(early.of[kDisplacementBias], {0.160566824, 0.549434337, -0.026130988});

  options.capacity = 100;
  const Gradients overflow = gradients(options, networks, energies, 2);
  EXPECT_NEAR(overflow.loss, 0.164920618, 1e-8);
  EXPECT_NEAR(norm_of_weights(overflow), 8.701327184, 1e-6);
}

TEST(FlowLattice, A8_GradientsAreTheSameInAnyNumberOfSegments) {
  const reference::Networks networks = reference::test_networks({});
  const std::vector<double> energies = reference::test_energies(90);
  std::vector<LatticeOptions> runs(4, options_of(reference::m1()));
  runs[1].importance_gradient = false;
  runs[2].stop = {.on = true, .threshold = 0.03, .patience = 9, .min_steps = 1};
  runs[3].capacity = 100;
  for (LatticeOptions& options : runs) {
    const Gradients one = gradients(options, networks, energies, 2);
    for (const int64_t segments : {1, 2, 3, 4}) {
      options.segments = segments;
      const Gradients found = gradients(options, networks, energies, 2);
      EXPECT_EQ(found.loss, one.loss) << segments;
      EXPECT_EQ(found.of, one.of) << segments;
    }
  }
}

TEST(FlowLattice, A11_PositionAndGateOfModeAHaveNoGradient) {
  const Gradients found =
      gradients(options_of(reference::mode_a()), reference::test_networks({.first = 2}),
                reference::test_energies(60), 2);
  EXPECT_NEAR(found.loss, 0.011459193, 1e-8);
  for (size_t i = 16; i < 24; ++i) EXPECT_EQ(norm(found.of[i]), 0) << i;  // position and gate
  EXPECT_GT(norm(found.of[kEnergyBias]), 0);
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
