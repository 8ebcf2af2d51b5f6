// How many iterations loops made whose data decide, and the operations that were made by that: on every device.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <utility>

#include "fullbore/autodiff/backward.h"
#include "fullbore/base/tensor_memory.h"
#include "fullbore/device/host_device.h"
#include "fullbore/device/reference_kernel.h"
#include "fullbore/device/sequential_replay.h"
#include "fullbore/ops/ops.h"
#include "fullbore/plan/launch_list.h"
#include "fullbore/runtime/program.h"
#include "tests/support/device.h"

namespace fullbore {
namespace {

using testing_support::cpu_device;

constexpr int64_t kMost = 6, kWidth = 8;
constexpr double kProduct = 2 * kWidth * kWidth * kWidth;

struct Counted {
  State state;
  Program program;

  Counted(const Graph& graph, std::shared_ptr<Device> device)
      : state(state_entries(graph), std::move(device)), program(Program::compile(graph, state)) {}

  /// One run, `count` being its only batch input.
  void run(int64_t count) {
    const TensorMemory memory = allocate_tensor_memory(sizeof(count));
    std::memcpy(memory.get(), &count, sizeof(count));
    const void* const batch[] = {memory.get()};
    program.run(batch);
  }
  /// Of each loop, by its entry in the launch list.
  std::vector<double> loops() const {
    std::vector<double> made;
    const LoopIterations iterations = program.iterations_made();
    const std::vector<LaunchEntry> list = launch_list(program.plan());
    for (size_t i = 0; i < list.size(); ++i)
      if (list[i].launch->loop) made.push_back(iterations.at(i));
    return made;
  }
  /// What flops_made() should be: every launch by how often the loop around it was walked.
  double flops_of_launches() const {
    const LoopIterations iterations = program.iterations_made();
    double flops = 0;
    for (const LaunchEntry& launch : launch_list(program.plan()))
      flops += launch_cost(program.plan(), launch).flops *
               (launch.parent < 0 ? 1 : iterations.at(static_cast<size_t>(launch.parent)));
    return flops;
  }
};

std::vector<std::shared_ptr<Device>> devices() {
  std::vector<std::shared_ptr<Device>> all = {open_device("reference", 1)};
  for (int workers = 1; workers <= 4; ++workers) all.push_back(cpu_device(workers));
  return all;
}

// A matmul each until `count` of them were made.
Tensor until(GraphBuilder& builder, Tensor x, Tensor count) {
  const LoopResult result =
      loop(builder, {x}, {}, {.iterations = kMost}, [&](const LoopBody& body) {
        return IterationResults{.carried = {matmul(body.carried[0], x)},
                                .stop = greater_equal(body.index + 1.0, count)};
      });
  return result.carried[0];
}

Tensor count_of(GraphBuilder& builder) {
  return builder.input("count", Role::batch, {DType::i64, {}});
}
Tensor weight_of(GraphBuilder& builder) {
  return builder.input("w", Role::parameter, {DType::f32, {kWidth, kWidth}});
}

TEST(IterationsMade, AnUntilLoopCountsThoseBeforeItEnded) {
  GraphBuilder builder("until");
  const Tensor count = count_of(builder);
  builder.output("y", until(builder, weight_of(builder), count));
  const Graph graph = builder.take();
  for (const auto& device : devices()) {
    Counted counted(graph, device);
    EXPECT_EQ(counted.program.plan().flops, kMost * kProduct);
    for (const int64_t wanted : {2, 5, 1, 6}) {
      counted.run(wanted);
      EXPECT_EQ(counted.loops(), std::vector<double>{static_cast<double>(wanted)});
      EXPECT_EQ(counted.program.flops_made(), static_cast<double>(wanted) * kProduct);
    }
  }
}

// Iteration i of the outer loop makes i + 1 of the inner one.
TEST(IterationsMade, NestedLoopsCountAllThatWereMade) {
  GraphBuilder builder("nested");
  const Tensor count = count_of(builder), w = weight_of(builder);
  const LoopResult outer =
      loop(builder, {w}, {}, {.iterations = kMost, .count = count}, [&](const LoopBody& body) {
        const LoopResult inner =
            loop(body.index.builder(), {body.carried[0]}, {},
                 {.iterations = kMost, .count = body.index + 1.0}, [&](const LoopBody& inside) {
                   return IterationResults{.carried = {matmul(inside.carried[0], w)}};
                 });
        return IterationResults{.carried = {inner.carried[0]}};
      });
  builder.output("y", outer.carried[0]);
  const Graph graph = builder.take();
  for (const auto& device : devices()) {
    Counted counted(graph, device);
    for (const int64_t wanted : {3, 0, 6}) {
      counted.run(wanted);
      const int64_t sum = wanted * (wanted + 1) / 2;
      const auto all = static_cast<double>(sum);
      EXPECT_EQ(counted.loops(), (std::vector<double>{static_cast<double>(wanted), all}));
      EXPECT_EQ(counted.program.flops_made(), all * kProduct);
    }
  }
}

// The gradient's loops make as many.
TEST(IterationsMade, LoopsOfTheGradientCountTheirs) {
  GraphBuilder builder("gradient");
  const Tensor count = count_of(builder), w = weight_of(builder);
  const Tensor wanted_gradients[] = {w};
  const Tensor loss = reduce_sum(until(builder, w, count), {0, 1});
  builder.output("w", gradient(loss, wanted_gradients)[0], 1);
  const Graph graph = builder.take();
  for (const auto& device : devices()) {
    Counted counted(graph, device);
    counted.run(kMost);
    const double most = counted.program.flops_made();
    EXPECT_DOUBLE_EQ(most, counted.program.plan().flops);
    EXPECT_DOUBLE_EQ(most, counted.flops_of_launches());
    counted.run(2);
    EXPECT_EQ(counted.loops(), (std::vector<double>{2, 2}));
    EXPECT_DOUBLE_EQ(counted.program.flops_made(), counted.flops_of_launches());
    EXPECT_LT(counted.program.flops_made(), most - 2 * (kMost - 2) * kProduct)
        << "of each iteration that was not made at least two matmuls are not";
  }
}

// Thread groups count what each of them makes.
TEST(IterationsMade, LoopsSideBySideCountTogether) {
  GraphBuilder builder("parallel");
  const Tensor count = count_of(builder), w = weight_of(builder);
  const LoopResult parts =
      loop(builder, {}, {}, {.iterations = 5, .parallel = true}, [&](const LoopBody& body) {
        const Tensor own = minimum(body.index + 1.0, count);
        return IterationResults{.carried = {}, .stacked = {until(body.index.builder(), w, own)}};
      });
  builder.output("y", parts.stacked[0]);
  const Graph graph = builder.take();
  for (const auto& device : devices()) {
    Counted counted(graph, device);
    for (const auto& [wanted, made] : {std::pair{3, 1 + 2 + 3 + 3 + 3}, {1, 5}}) {
      counted.run(wanted);
      EXPECT_EQ(counted.loops(), (std::vector<double>{5, static_cast<double>(made)}));
      EXPECT_EQ(counted.program.flops_made(), made * kProduct);
    }
  }
}

/// The null device's way through a program, of which it says nothing.
class SilentReplay final : public SequentialReplay {
 public:
  using SequentialReplay::SequentialReplay;
  int64_t iterations_made(int) const override { return -1; }

 private:
  void launch(const Kernel&, std::span<const Place>) override {}
  void copy(Place, Place, int64_t) override {}
  void clear(Place, int64_t) override {}
  int64_t number(Place, int64_t, int64_t otherwise) const override { return otherwise; }
  void set_number(Place, int64_t) override {}
};

class SilentRecorder final : public Recording {
 public:
  std::unique_ptr<Replayable> finish() override { return std::make_unique<SilentReplay>(take()); }
};

class SilentDevice final : public HostDevice {
 public:
  Target target() const override { return {}; }
  DeviceFacts facts() const override { return {.name = "silent", .hardware = "of a test"}; }
  std::unique_ptr<Compiler> compiler() override { return std::make_unique<ReferenceCompiler>(); }
  std::unique_ptr<Recorder> record() override { return std::make_unique<SilentRecorder>(); }
  MeasuredPeaks measure_peaks(const PeakMemory&) override { return {}; }
};

// It is known all the same where no data decide.
TEST(IterationsMade, ADeviceNeedNotSay) {
  for (const bool open : {true, false}) {
    GraphBuilder builder("silent");
    const Tensor count = count_of(builder), w = weight_of(builder);
    LoopOptions options{.iterations = kMost};
    if (open) options.count = count;
    const LoopResult result = loop(builder, {w}, {}, options, [&](const LoopBody& body) {
      return IterationResults{.carried = {matmul(body.carried[0], w)}};
    });
    builder.output("y", result.carried[0]);
    Counted counted(builder.take(), std::make_shared<SilentDevice>());
    counted.run(2);
    EXPECT_EQ(counted.program.iterations_made().empty(), open);
    if (open)
      EXPECT_TRUE(std::isnan(counted.program.flops_made()));
    else
      EXPECT_EQ(counted.program.flops_made(), kMost * kProduct);
  }
}

}  // namespace
}  // namespace fullbore
