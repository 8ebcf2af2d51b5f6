// The lattice compiled for an NVIDIA card, on a driver of the tests' own: the CPU's gradients, by few calls of the driver.
#include <gtest/gtest.h>

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "fullbore/runtime/program.h"
#include "fullbore/runtime/state.h"
#include "tests/fake_cuda/fake_cuda.h"
#include "tests/support/device.h"
#include "workloads/energy_flow/tests/compiled_lattice.h"
#include "workloads/energy_flow/tests/test_weights.h"

namespace fullbore::energy_flow {
namespace {

FakeCuda& fake() {
  static void* const library = ::dlopen(FB_FAKE_CUDA, RTLD_NOW | RTLD_LOCAL);
  static auto* const get = reinterpret_cast<FakeCuda* (*)()>(::dlsym(library, "fake_cuda"));
  return *get();
}

/// Of the second run of a program.
struct Counts {
  int64_t calls = 0;  ///< of the driver
  int64_t kernels = 0, graphs = 0;
  int64_t orders = 0;  ///< waits of the host and of streams, and events
};

std::unique_ptr<void, void (*)(void*)> aligned(const std::vector<char>& bytes) {
  std::unique_ptr<void, void (*)(void*)> memory(
      std::aligned_alloc(64, (bytes.size() + 64) / 64 * 64), std::free);
  std::memcpy(memory.get(), bytes.data(), bytes.size());
  return memory;
}

/// What a device makes of the graph in single precision, the second time.
EvaluateGraph on(const std::shared_ptr<Device>& device, Counts* counts = nullptr) {
  return [=](const std::vector<Literal>& inputs, const BuildMany& build) {
    GraphBuilder builder;
    std::vector<Tensor> tensors;
    std::vector<std::unique_ptr<void, void (*)(void*)>> memory;
    std::vector<const void*> batch;
    for (const Literal& input : inputs) {
      const TensorType type{DType::f32, input.shape()};
      tensors.push_back(builder.input(fmt::format("x{}", tensors.size()), Role::batch, type));
      memory.push_back(aligned(Literal::of(type, elements(input)).bytes()));
      batch.push_back(memory.back().get());
    }
    const std::vector<Tensor> results = build(builder, tensors);
    for (size_t i = 0; i < results.size(); ++i) builder.output(fmt::format("y{}", i), results[i]);
    State state({}, device);
    Program program = Program::compile(builder.graph(), state, {});
    program.run(batch);
    const FakeCuda before = fake();
    program.run(batch);
    if (counts != nullptr)
      *counts = {.calls = fake().calls - before.calls,
                 .kernels = fake().launches - before.launches,
                 .graphs = fake().graph_launches - before.graph_launches,
                 .orders = fake().orders - before.orders};
    std::vector<Literal> outputs;
    for (int i = 0; i < std::ssize(results); ++i)
      outputs.push_back(
          Literal::from_bytes(program.result_type(i), program.read_result<std::byte>(i).data()));
    return outputs;
  };
}

// Steps end by their stop rule, and tiles are moved as far as there are flows: both loops and those of the gradient are
// conditional nodes of one graph, or the host steps them where the driver has none, and what they have in them are graphs.
TEST(LatticeOnCard, HasTheGradientsOfTheProcessorByFewCalls) {
  ::setenv("FULLBORE_CUDA_DRIVER", FB_FAKE_CUDA, 1);
  LatticeOptions options = options_of(reference::m1());
  options.tile_rows = 64;
  const reference::Networks networks = reference::test_networks({});
  const std::vector<double> energies = reference::test_energies(90);
  const auto gradients_on = [&](const std::shared_ptr<Device>& device, Counts* counts) {
    return gradients(options, networks, energies, 2, on(device, counts));
  };
  const Gradients expected = gradients_on(testing_support::cpu_device(1), nullptr);
  Counts in_one, with_graphs, alone;
  const Gradients found = gradients_on(open_device("cuda"), &in_one);
  const int64_t version = std::exchange(fake().version, 12030);  // without conditional nodes
  const Gradients stepped = gradients_on(open_device("cuda"), &with_graphs);
  fake().version = version;
  ::setenv("FULLBORE_CUDA_BLOCKING", "1", 1);
  const Gradients blocking = gradients_on(open_device("cuda"), &alone);
  ::unsetenv("FULLBORE_CUDA_BLOCKING");
  EXPECT_EQ(found.loss, blocking.loss);
  EXPECT_EQ(found.of, blocking.of);
  EXPECT_EQ(stepped.loss, blocking.loss);
  EXPECT_EQ(stepped.of, blocking.of);
  EXPECT_NEAR(found.loss, expected.loss, 1e-5);
  // Each is within 2e-4 of sums in double precision, by the processor's instructions or the card's.
  for (size_t i = 0; i < expected.of.size(); ++i) {
    double largest = 1;
    for (const double element : expected.of[i]) largest = std::max(largest, std::abs(element));
    for (size_t k = 0; k < expected.of[i].size(); ++k)
      EXPECT_NEAR(found.of[i][k], expected.of[i][k], 4e-4 * largest)
          << "input " << i << ", element " << k;
  }
  // Alone, each kernel is waited for: a call more than without graphs, which are 3.3 times as many as with them.
  EXPECT_LT(3 * with_graphs.calls, alone.calls - alone.kernels);
  EXPECT_LT(with_graphs.kernels, alone.kernels);
  EXPECT_GT(with_graphs.graphs, 1);
  EXPECT_EQ(in_one.graphs, 1);
  EXPECT_LT(in_one.orders, with_graphs.orders);
  EXPECT_LT(50 * in_one.calls, with_graphs.calls);
}

}  // namespace
}  // namespace fullbore::energy_flow
