// engine.offload=optimizer: steps have the bits that they have with moments on the card, which needs less memory by them.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "fullbore/base/tensor_memory.h"
#include "fullbore/ops/ops.h"
#include "fullbore/runtime/program.h"
#include "fullbore/trace/control.h"
#include "fullbore/train/frozen.h"
#include "fullbore/train/step_runner.h"
#include "tests/cuda/fake_card.h"
#include "tests/support/small_transformer.h"

namespace fullbore::cuda {
namespace {

using OffloadedSteps = FakeCard;

constexpr int kSteps = 4;

class Noise : public BatchSource {
 public:
  /// `broken`: the batch, from 0, with a NaN; -1: none.
  explicit Noise(int broken = -1) : broken_(broken) {}
  const std::vector<BatchField>& fields() const override { return fields_; }
  void fill(uint64_t position, std::span<void* const> buffers) const override {
    auto* x = static_cast<float*>(buffers[0]);
    for (int i = 0; i < 8 * 16; ++i)
      x[i] = static_cast<float>((position * 7 + static_cast<uint64_t>(i) * 5) % 13) / 13 - 0.5F;
    if (static_cast<int>(position) == broken_) x[70] = std::numeric_limits<float>::quiet_NaN();
  }

 private:
  int broken_;
  std::vector<BatchField> fields_ = {{"x", {DType::f32, {8, 16}}}};
};

/// Batches of two shapes in turns, the smaller first.
class GrowingNoise final : public Noise {
 public:
  std::vector<std::vector<BatchField>> shapes() const override {
    return {{{"x", {DType::f32, {2, 16}}}}, fields()};
  }
  size_t shape_at(uint64_t position) const override { return position % 2; }
  void fill(uint64_t position, std::span<void* const> buffers) const override {
    auto* x = static_cast<float*>(buffers[0]);
    const int count = shape_at(position) == 0 ? 2 * 16 : 8 * 16;
    for (int i = 0; i < count; ++i) x[i] = static_cast<float>((i * 5) % 13) / 13 - 0.5F;
  }
};

/// Three layers of elementwise weights.
Loss deep_loss(Trace& trace, std::span<const Tensor> batch) {
  Tensor x = batch[0];
  for (const char* const name : {"first", "second", "third"})
    x = tanh(x * trace.parameter(name, {16}, Initializer::normal(0.5)));
  const Tensor error = reduce_sum(x, {1}) - 1.0;
  return reduce_mean(error * error, {0});
}

struct Guess {
  Tensor y;
};

/// Of a fixed point, which is sought until it moves little.
Loss fixed_point_loss(Trace& trace, std::span<const Tensor> batch) {
  const Tensor drive = batch[0] * trace.parameter("weight", {16}, Initializer::normal(0.5));
  const WhileResult<Guess> found =
      while_loop(Guess{0.0 * drive}, {.at_most = 20}, [&](const Guess& now) {
        const Guess next{tanh(drive + 0.4 * now.y)};
        const Tensor moved = next.y - now.y;
        return Iteration<Guess>{next, less(reduce_max(moved * moved, {0, 1}), 1e-4)};
      });
  const Tensor error =
      reduce_sum(found.state.y * trace.parameter("other", {16}, Initializer::normal(0.5)), {1}) -
      1.0;
  return reduce_mean(error * error, {0});
}

struct Outcome {
  std::vector<uint64_t> losses;  ///< their bits, for one may be NaN
  double skipped = 0;
  std::map<std::string, std::vector<std::byte>> first,
      state;  ///< before the first step and behind all
  int64_t planned_bytes = 0, allocated_bytes = 0, host_bytes = 0, graph_launches = 0;
};

std::map<std::string, std::vector<std::byte>> bytes_of(const State& state) {
  std::map<std::string, std::vector<std::byte>> found;
  for (size_t i = 0; i < state.entries().size(); ++i) {
    std::vector<std::byte> bytes(static_cast<size_t>(state.entries()[i].type.bytes()));
    state.read(static_cast<int>(i), bytes);
    found[state.entries()[i].name] = std::move(bytes);
  }
  return found;
}

TrainingJob job_of(LossFunction loss, TrainingOptions options = {}) {
  TrainingJob job;
  job.training = std::make_shared<Noise>();
  job.loss = std::move(loss);
  job.options = std::move(options);
  job.options.device = "cuda";
  job.options.optimizer.schedule = {"constant", 0.05, 0, 0, 1};
  return job;
}

Outcome outcome_of(const FakeCuda& fake, TrainingJob job, bool in_host, int steps = kSteps) {
  job.options.moments_in_host = in_host;
  StepRunner runner(job);
  Outcome outcome;
  outcome.first = bytes_of(runner.state());
  outcome.planned_bytes = runner.planned_bytes();
  outcome.allocated_bytes = fake.allocated_bytes;
  outcome.host_bytes = runner.state().host_bytes();
  const int64_t before = fake.graph_launches;
  for (int i = 0; i < steps; ++i) {
    outcome.losses.push_back(std::bit_cast<uint64_t>(runner.run().loss));
    outcome.skipped += runner.program(0).scalar("skipped");
  }
  outcome.graph_launches = fake.graph_launches - before;
  outcome.state = bytes_of(runner.state());
  return outcome;
}

// In whatever order a card makes what nothing orders, and launch by launch.
void expect_the_bits_of_moments_on_the_card(FakeCuda& fake, const TrainingJob& job,
                                            const std::string& what) {
  const Outcome expected = outcome_of(fake, job, false);
  EXPECT_EQ(expected.host_bytes, 0);
  EXPECT_NE(expected.state, expected.first);
  for (const uint64_t seed : {0, 1, 2, 3}) {
    fake.seed = seed;
    const Outcome found = outcome_of(fake, job, true);
    EXPECT_EQ(found.losses, expected.losses) << what << " " << seed;
    EXPECT_EQ(found.state, expected.state) << what << " " << seed;
    EXPECT_EQ(found.skipped, expected.skipped);
    EXPECT_GE(found.graph_launches, expected.graph_launches);
    // What is planned is what is taken.
    EXPECT_GT(found.host_bytes, 0);
    EXPECT_EQ(expected.allocated_bytes - found.allocated_bytes,
              expected.planned_bytes - found.planned_bytes);
  }
  fake.seed = 0;
  const Variable blocking("FULLBORE_CUDA_BLOCKING", "1");
  EXPECT_EQ(outcome_of(fake, job, true).state, expected.state) << what;
}

TEST_F(OffloadedSteps, HaveTheBitsOfMomentsOnTheCard) {
  for (const char* const moments : {"f32", "bf16", "int8"})
    for (const int64_t parts : {1, 2}) {
      TrainingOptions options;
      options.parts = {.accumulate = parts, .parallel = 1};
      options.optimizer.clip_norm = 0.5;
      options.optimizer.ema_decay = 0.9;
      options.optimizer.storage.moments = moments;
      expect_the_bits_of_moments_on_the_card(fake(), job_of(deep_loss, options), moments);
    }
}

// By conditional nodes, and stepped by the host, which cuts the step in several graphs.
TEST_F(OffloadedSteps, MayHaveAdaptiveLoops) {
  for (const int version : {12040, 12030})
    for (const int64_t parts : {1, 2}) {
      fake().version = version;
      TrainingOptions options;
      options.parts = {.accumulate = parts, .parallel = 1};
      expect_the_bits_of_moments_on_the_card(fake(), job_of(fixed_point_loss, options),
                                             std::to_string(version));
    }
  fake().version = 12040;
}

// A transformer with attention, by bf16 products and with activations that are made again.
TEST_F(OffloadedSteps, OfATransformer) {
  for (const auto& [moments, parts] :
       {std::pair{"f32", 1}, std::pair{"int8", 1}, std::pair{"f32", 2}}) {
    TrainingOptions options;
    options.parts = {.accumulate = parts, .parallel = 1};
    options.optimizer.clip_norm = 0.5;
    options.optimizer.storage.moments = moments;
    options.compile.precision = DType::bf16;
    options.compile.recompute = parts == 1 ? Recompute::off : Recompute::full;
    TrainingJob job = job_of(testing_support::small_transformer, options);
    job.training = std::make_shared<testing_support::TokenChains>();
    const Outcome expected = outcome_of(fake(), job, false, 2);
    fake().seed = 3;
    const Outcome found = outcome_of(fake(), job, true, 2);
    fake().seed = 0;
    EXPECT_EQ(found.losses, expected.losses) << moments << " " << parts;
    EXPECT_EQ(found.state, expected.state) << moments << " " << parts;
    EXPECT_NE(expected.state, expected.first);
    EXPECT_GT(found.host_bytes, 0);
    EXPECT_EQ(expected.allocated_bytes - found.allocated_bytes,
              expected.planned_bytes - found.planned_bytes);
  }
}

// What is frozen has no moments to bring, and stays as it is.
TEST_F(OffloadedSteps, LeaveWhatIsFrozen) {
  const TrainingJob all = job_of(deep_loss), job = job_of(with_frozen(deep_loss, {"second"}));
  expect_the_bits_of_moments_on_the_card(fake(), job, "frozen");
  const Outcome found = outcome_of(fake(), job, true);
  EXPECT_EQ(found.state.at("second"), found.first.at("second"));
  EXPECT_NE(found.state.at("first"), found.first.at("first"));
  EXPECT_LT(found.host_bytes, outcome_of(fake(), all, true).host_bytes);
}

// A step that is not finite leaves its moments as they were, there too: the host's have what the step before has written, and
// the next step goes on from that.
TEST_F(OffloadedSteps, MayBeSkipped) {
  for (const char* const moments : {"f32", "int8"})
    for (const int64_t parts : {1, 2}) {
      TrainingOptions options;
      options.parts = {.accumulate = parts, .parallel = 1};
      options.optimizer.clip_norm = 0.5;
      options.optimizer.storage.moments = moments;
      TrainingJob job = job_of(deep_loss, options);
      job.training = std::make_shared<Noise>(2);
      EXPECT_EQ(outcome_of(fake(), job, true).skipped, 1);
      expect_the_bits_of_moments_on_the_card(fake(), job, moments);
      Outcome before = outcome_of(fake(), job, true, 2), behind = outcome_of(fake(), job, true, 3);
      EXPECT_EQ(behind.skipped, 1);
      ASSERT_EQ(before.state.erase("step"), 1U);
      ASSERT_EQ(behind.state.erase("step"), 1U);
      EXPECT_EQ(behind.state, before.state) << moments << " " << parts;
    }
}

// No graph knows of memory that was given back: programs of batches of several shapes share their working memory, which is
// as large as the largest needs it from the start.
TEST_F(OffloadedSteps, OfSeveralShapesKeepTheMemoryOfTheirCopies) {
  TrainingJob job = job_of(deep_loss);
  job.training = std::make_shared<GrowingNoise>();
  const Outcome expected = outcome_of(fake(), job, false);
  const Outcome found = outcome_of(fake(), job, true);
  EXPECT_STREQ(fake().fault, "");
  EXPECT_GT(found.host_bytes, 0);
  EXPECT_EQ(found.losses, expected.losses);
  EXPECT_EQ(found.state, expected.state);
}

// Nor does one that was made before its arena had to grow for another, in the middle of a run.
TEST_F(OffloadedSteps, AreForgottenBeforeTheirMemoryIsGivenBack) {
  const auto swapping = [](int64_t columns) {
    GraphBuilder builder("step");
    const TensorType type{DType::f32, {16}};
    const Tensor a = builder.input("a", Role::parameter, type);
    const Tensor b = builder.input("b", Role::parameter, type);
    const Tensor x = builder.input("x", Role::batch, {DType::f32, {16, columns}});
    builder.output("y", reduce_sum(std::get<0>(sort(x * 2.0)), {0, 1}));
    builder.output("a", b, 0);
    builder.output("b", a, 1);
    return builder.take();
  };
  const Graph small = swapping(2), large = swapping(2000);
  const auto device = open();
  State state(state_entries(small), device);
  state.write<float>("a", std::vector<float>(16, 1));
  state.write<float>("b", std::vector<float>(16, 2));
  const auto arena = std::make_shared<Arena>(*device);
  Program first = Program::compile(small, state, {}, nullptr, arena);
  const auto run = [](Program& program, int64_t columns) {
    const TensorMemory x = allocate_tensor_memory(16 * columns * 4);
    std::fill_n(reinterpret_cast<float*>(x.get()), 16 * columns, 0.5F);
    const void* const batch[] = {x.get()};
    program.run(batch);
    return program.scalar("y");
  };
  EXPECT_EQ(run(first, 2), 32);
  const int64_t before = arena->bytes();
  Program second = Program::compile(large, state, {}, nullptr, arena);
  ASSERT_GT(arena->bytes(), before);
  EXPECT_STREQ(fake().fault, "");
  EXPECT_EQ(run(first, 2), 32);
  EXPECT_EQ(run(second, 2000), 32000);
  EXPECT_EQ(run(first, 2), 32);
  EXPECT_EQ(state.read<float>("a"), std::vector<float>(16, 1));
  EXPECT_STREQ(fake().fault, "");
}

}  // namespace
}  // namespace fullbore::cuda
