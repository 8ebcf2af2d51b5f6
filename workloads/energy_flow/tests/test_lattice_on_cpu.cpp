// The lattice compiled for the CPU, in single precision: A6.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <memory>

#include "tests/support/device.h"
#include "tests/support/program_check.h"
#include "workloads/energy_flow/tests/compiled_lattice.h"
#include "workloads/energy_flow/tests/test_weights.h"

namespace fullbore::energy_flow {
namespace {

/// What the CPU makes of the graph with inputs of this dtype.
EvaluateGraph on_cpu(int threads, DType dtype) {
  return [=](const std::vector<Literal>& inputs, const BuildMany& build) {
    GraphBuilder builder;
    std::vector<Tensor> tensors;
    std::vector<Literal> rounded;
    for (const Literal& input : inputs) {
      rounded.push_back(Literal::of({dtype, input.shape()}, elements(input)));
      rounded.back().round();
      tensors.push_back(
          builder.input(fmt::format("x{}", tensors.size()), Role::batch, rounded.back().type()));
    }
    const std::vector<Tensor> results = build(builder, tensors);
    for (size_t i = 0; i < results.size(); ++i) builder.output(fmt::format("y{}", i), results[i]);
    return testing_support::run_graph(builder.graph(), rounded,
                                      testing_support::cpu_device(threads), {});
  };
}

struct Named {
  const char* name;
  reference::Lattice lattice;
  reference::Networks networks;
  std::vector<double> energies;
};

std::vector<Named> runs() {
  std::vector<Named> all = {
      {"M1", reference::m1(), reference::test_networks({}), reference::test_energies(90)},
      {"A", reference::mode_a(), reference::test_networks({.first = 2}),
       reference::test_energies(60)}};
  all.push_back(all[0]);
  all.back().name = "M1 in little room";
  all.back().lattice.capacity = 100;
  all.push_back(all[0]);
  all.back().name = "M1 that stops";
  all.back().lattice.stop = {true, 0.03, 9, 1, false};
  return all;
}

TEST(LatticeOnCpu, IsTheReferenceInSinglePrecision) {
  for (const Named& each : runs()) {
    SCOPED_TRACE(each.name);
    expect_equal(
        run(options_of(each.lattice), each.networks, each.energies, 2, on_cpu(2, DType::f32)),
        reference::run(each.lattice, each.networks, each.energies), 2e-4);
  }
}

void expect_near(const Gradients& found, const Gradients& expected, double tolerance) {
  EXPECT_NEAR(found.loss, expected.loss, tolerance);
  for (size_t i = 0; i < expected.of.size(); ++i) {
    double largest = 1;
    for (const double element : expected.of[i]) largest = std::max(largest, std::abs(element));
    for (size_t k = 0; k < expected.of[i].size(); ++k)
      EXPECT_NEAR(found.of[i][k], expected.of[i][k], tolerance * largest)
          << "input " << i << ", element " << k;
  }
}

// The interpreter moves all rows of the store at once.
TEST(LatticeOnCpu, MovesTilesOfFlowsToTheSameGradients) {
  for (const Named& each : runs()) {
    SCOPED_TRACE(each.name);
    LatticeOptions options = options_of(each.lattice);
    const Gradients expected = gradients(options, each.networks, each.energies, 2);
    options.tile_rows = 16;
    const auto found = [&](int threads, DType dtype) {
      return gradients(options, each.networks, each.energies, 2, on_cpu(threads, dtype));
    };
    expect_near(found(2, DType::f64), expected, 1e-9);
    const Gradients one = found(1, DType::f32);
    expect_near(one, expected, 2e-4);
    for (const int threads : {2, 3, 4}) {
      const Gradients more = found(threads, DType::f32);
      EXPECT_EQ(more.loss, one.loss) << threads;
      EXPECT_EQ(more.of, one.of) << threads;
    }
  }
}

TEST(LatticeOnCpu, HasTheGradientsOfTheInterpreter) {
  for (const Named& each : runs()) {
    SCOPED_TRACE(each.name);
    const LatticeOptions options = options_of(each.lattice);
    const Gradients expected = gradients(options, each.networks, each.energies, 2);
    for (const auto& [dtype, tolerance] :
         {std::pair(DType::f32, 2e-4), std::pair(DType::f64, 1e-9)}) {
      const Gradients found = gradients(options, each.networks, each.energies, 2, on_cpu(2, dtype));
      expect_near(found, expected, tolerance);
    }
  }
}

TEST(LatticeOnCpu, HasTheSameBitsOnAnyNumberOfThreadsAndInSegments) {
  for (const Named& each : runs()) {
    SCOPED_TRACE(each.name);
    const LatticeOptions options = options_of(each.lattice);
    const Gradients one =
        gradients(options, each.networks, each.energies, 2, on_cpu(1, DType::f32));
    for (const int threads : {2, 3, 4}) {
      const Gradients more =
          gradients(options, each.networks, each.energies, 2, on_cpu(threads, DType::f32));
      EXPECT_EQ(more.loss, one.loss) << threads;
      EXPECT_EQ(more.of, one.of) << threads;
    }
    for (const int64_t segments : {2, 4}) {
      LatticeOptions in_segments = options;
      in_segments.segments = segments;
      const Gradients same =
          gradients(in_segments, each.networks, each.energies, 2, on_cpu(2, DType::f32));
      EXPECT_EQ(same.loss, one.loss) << segments << " segments";
      EXPECT_EQ(same.of, one.of) << segments << " segments";
    }
  }
}

}  // namespace
}  // namespace fullbore::energy_flow
