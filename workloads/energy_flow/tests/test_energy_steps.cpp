// Training steps of a small lattice as the device runs them: what is never rounded, never kept and never allocated.
#include <gtest/gtest.h>
#include <malloc.h>

#include <cmath>
#include <limits>
#include <map>
#include <string>

#include "fullbore/app/job_options.h"
#include "fullbore/base/philox.h"
#include "fullbore/base/tensor_memory.h"
#include "fullbore/plan/launch_list.h"
#include "fullbore/train/compiled_step.h"
#include "fullbore/train/initial_values.h"
#include "fullbore/train/step_function.h"
#include "tests/support/allocation_counter.h"
#include "tests/support/device.h"
#include "workloads/energy_flow/energy_job.h"
#include "workloads/energy_flow/energy_keys.h"
#include "workloads/energy_flow/flow_lattice.h"

namespace fullbore::energy_flow {
namespace {

using testing_support::cpu_device;
using testing_support::Edited;

constexpr int64_t kWidth = 32, kBatch = 4;

constexpr const char* kSmall =
    "width: 5, height: 4, spawn_threshold: 0.05, displacement_scale: 6, "
    "least_displacement_scale: 6";

Config config_of(const std::string& precision = "fp32", const std::string& lattice = kSmall) {
  return parse_config(
      "{model: {name: energy_flow, embedding_width: 32, carrier_hidden: 32, neuron_hidden: 8, "
      "neuron_outputs: 8, head_hidden: 8}, lattice: {depth: 8, capacity: 512, tile_rows: 16, "
      "early_stop: false, " +
          lattice +
          "}, optim: {schedule: constant, warmup_steps: 0, learning_rate: 1e-3}, "
          "train: {batch_size: 4}, engine: {threads: 2, precision: " +
          precision + "}}",
      "x");
}

/// A lattice that is trained, step by step, with nothing of a run around it.
class Steps {
 public:
  explicit Steps(const Config& config)
      : traced_(trace_training_step(energy_loss(config), PairBatches::fields_of(kBatch, kWidth, 0),
                                    training_options(config).optimizer)),
        state_(initial_state(traced_, 1, cpu_device(2))),
        program_(Program::compile(traced_.graph, state_, compile_options(config))),
        pairs_(std::make_shared<EmbeddingPairs>(EmbeddingPairs::of_corpus(42, 0, 64, kWidth))),
        batches_(pairs_, nullptr, 0, 64, kBatch, 1,
                 [config](uint64_t position) { return step_settings(config, position); }) {
    for (const BatchField& field : batches_.fields())
      buffers_.push_back(allocate_tensor_memory(field.type.bytes()));
    for (const TensorMemory& buffer : buffers_) pointers_.push_back(buffer.get());
  }

  double run() {
    batches_.fill(step_++, pointers_);
    const std::vector<const void*> batch(pointers_.begin(), pointers_.end());
    program_.run(batch);
    return program_.scalar("loss");
  }
  /// On the batch before, with nothing but the step.
  void run_again() { program_.run({const_cast<const void**>(pointers_.data()), pointers_.size()}); }

  State& state() { return state_; }
  const Program& program() const { return program_; }
  double scalar(const char* name) const { return program_.scalar(name); }
  std::map<std::string, std::vector<std::byte>> weights() const {
    std::map<std::string, std::vector<std::byte>> all;
    for (const StateEntry& entry : state_.entries())
      if (entry.role == Role::parameter || entry.role == Role::moment)
        all[entry.name] = state_.read<std::byte>(entry.name);
    return all;
  }

 private:
  TracedStep traced_;
  State state_;
  Program program_;
  std::shared_ptr<const EmbeddingPairs> pairs_;
  PairBatches batches_;
  std::vector<TensorMemory> buffers_;
  std::vector<void*> pointers_;
  uint64_t step_ = 0;
};

// A18. A weight that a place depends on, and one that a state does.
TEST(EnergySteps, AStepThatIsNotFiniteIsSkipped) {
  for (const char* name : {"neuron.coordinates.weight", "carrier.gru.1.weight_hh"}) {
    Steps steps(config_of());
    steps.run();
    double skipped = steps.scalar("skipped");
    float kept = 0;
    {
      Edited<float> weight(steps.state(), name);
      kept = std::exchange(weight[5], std::numeric_limits<float>::quiet_NaN());
    }
    const auto before = steps.weights();
    steps.run();
    EXPECT_EQ(steps.scalar("skipped"), 1) << name;
    skipped += steps.scalar("skipped");
    EXPECT_TRUE(steps.weights() == before) << name;
    Edited<float>(steps.state(), name)[5] = kept;
    const auto restored = steps.weights();
    EXPECT_TRUE(std::isfinite(steps.run())) << name;
    skipped += steps.scalar("skipped");
    EXPECT_FALSE(steps.weights() == restored) << name;
    EXPECT_EQ(skipped, 1) << name;
  }
}

// A19 and A20: from its first launch to its last a step asks the system for nothing, so that nothing can be left of it.
TEST(EnergySteps, KeepAndAllocateNothing) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers bring their own malloc";
#endif
  const auto live_bytes = [] {
    const struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
  };
  Steps steps(config_of());
  for (int i = 0; i < 3; ++i) steps.run();
  const size_t live = live_bytes();
  for (int i = 3; i < 300; ++i) {
    steps.run();
    if (i % 10 != 0) continue;
    const int64_t allocations = allocation_count();
    steps.run_again();
    ASSERT_EQ(allocation_count(), allocations) << "step " << i;
  }
  EXPECT_EQ(live_bytes(), live);
}

// Tiles that hold no flow count for nothing.
TEST(EnergySteps, CountTheOperationsThatTheyMake) {
  Steps steps(config_of());
  steps.run();
  const Program& program = steps.program();
  const std::vector<LaunchEntry> list = launch_list(program.plan());
  const LoopIterations made = program.iterations_made();
  std::vector<double> outer, tiles;
  for (size_t i = 0; i < list.size(); ++i)
    if (list[i].launch->loop) (list[i].parent < 0 ? outer : tiles).push_back(made.at(i));
  ASSERT_EQ(outer.size(), 2U) << "one of steps, and its gradient";
  for (const double each : outer) EXPECT_EQ(each, steps.scalar("steps"));
  ASSERT_EQ(tiles.size(), 2U);
  EXPECT_EQ(tiles[0], tiles[1]) << "the gradient's";
  const double flows = steps.scalar("created");
  EXPECT_GE(tiles[0], outer[0] * kBatch * 20 / 16 * 0.5);
  EXPECT_LE(tiles[0], outer[0] * std::ceil(flows / 16));
  EXPECT_LT(program.flops_made(), program.plan().flops);
  EXPECT_GT(program.flops_made(), 0);
}

// Section 4.4: low operands of matmuls change the loss by less than a fiftieth. Among many cells, and flows that have no
// children: where one lands in another cell, or has a child more, that is no matter of precision.
TEST(EnergySteps, LearnInLowPrecisionWhatTheyLearnInFull) {
  const std::string lattice = "width: 10, height: 10, spawn_threshold: 1";
  Steps full(config_of("fp32", lattice)), low(config_of("bf16", lattice));
  for (int i = 0; i < 30; ++i) {
    const double expected = full.run();
    EXPECT_NEAR(low.run(), expected, 0.02 * expected) << "step " << i;
  }
}

/// The surface of flows that all move by `step` on x, in bf16, with an energy of 1 each.
std::vector<float> surface_of_moves(int64_t width, double step, int64_t depth) {
  const NetworkSizes sizes{.mode = FlowMode::relative,
                           .neuron_hidden = 4,
                           .neuron_outputs = 4,
                           .carrier_hidden = 8,
                           .carrier_layers = 1,
                           .head_hidden = 4};
  Trace trace("moves", false);
  LatticeOptions options;
  options.width = width;
  options.height = 2;
  options.depth = depth;
  options.capacity = 2 * width;
  options.spawn_threshold = 1;
  options.stop.on = false;
  options.tile_rows = width / 2;
  const NetworkWeights weights = declare_networks(trace, sizes);
  const Tensor energies = full(trace.builder(), {DType::f32, {1, options.surface()}}, 1);
  const FlowRun run = run_flows(options, relative_rule(options, weights), energies, 1, 8);
  trace.builder().output("surface", run.surface);
  const Graph graph = trace.builder().take();
  State state(state_entries(graph), cpu_device(2));
  Edited<float>(state, "carrier.displacement.output.bias")[0] = static_cast<float>(step);
  Edited<float>(state, "carrier.energy.output.bias")[0] = 1;
  CompileOptions compile;
  compile.precision = DType::bf16;
  Program program = Program::compile(graph, state, compile);
  program.run({});
  return program.read_result<float>(program.output("surface"));
}

// bf16 rounds -1 + 0.0015 to -1, and 0.75 + 0.0015 to 0.75: flows would stay where they are.
TEST(EnergySteps, PlacesAreNeverRounded) {
  constexpr int64_t kCells = 401, kSteps = 20;  // a cell is 0.005 wide
  const std::vector<float> surface = surface_of_moves(kCells, 0.0015, 2 * kSteps);
  for (size_t x = 0; x < kCells; ++x)
    EXPECT_EQ(surface[x] == 0, x < 6) << x << ": all have moved by 0.03, six cells";
}

// What the neuron sees of a place is a place, too.
TEST(EnergySteps, TheNeuronTellsPlacesApartThatBf16DoesNot) {
  const auto energies = [](DType precision) {
    const NetworkSizes sizes{.mode = FlowMode::relative,
                             .neuron_hidden = 8,
                             .neuron_outputs = 8,
                             .carrier_hidden = 16,
                             .carrier_layers = 1,
                             .head_hidden = 8};
    Trace trace("neuron", false);
    const NetworkWeights weights = declare_networks(trace, sizes);
    GraphBuilder& builder = trace.builder();
    const Tensor position = builder.input("position", Role::frozen, {DType::f32, {2, 3}});
    const Tensor energy = full(builder, {DType::f32, {2, 1}}, 0.5);
    const Tensor hidden = full(builder, {DType::f32, {2, 16}}, 0);
    builder.output("energy",
                   predict(weights, FlowMode::relative, position, energy, {hidden}).energy);
    const Graph graph = builder.take();
    State state(state_entries(graph), cpu_device(1));
    PhiloxStream draws(5);
    for (const StateEntry& entry : state.entries())
      for (float& value : Edited<float>(state, entry.name))
        value = entry.name.find("norms") != std::string::npos
                    ? 1
                    : static_cast<float>(0.4 * draws.normal());
    // 400 times as far from (0.75, 0.75, 0.75).
    std::vector<float> weight(9), bias(3);
    for (size_t at = 0; at < 9; ++at) {
      weight[at] = 400 * std::sin(static_cast<float>(at) + 1);
      bias[at / 3] -= 0.75F * weight[at];
    }
    state.write("neuron.coordinates.weight", weight);
    state.write("neuron.coordinates.bias", bias);
    state.write("position", std::vector<float>{0.75F, 0.75F, 0.75F, 0.7515F, 0.75F, 0.75F});
    CompileOptions compile;
    compile.precision = precision;
    Program program = Program::compile(graph, state, compile);
    program.run({});
    return program.read_result<float>(program.output("energy"));
  };
  const std::vector<float> full = energies(DType::f32), low = energies(DType::bf16);
  const double expected = full[1] - full[0];
  ASSERT_GT(std::abs(expected), 0.005);
  EXPECT_NEAR(low[1] - low[0], expected, 0.5 * std::abs(expected));
}

}  // namespace
}  // namespace fullbore::energy_flow
