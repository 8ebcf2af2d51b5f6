#include <algorithm>

#include "fullbore/runtime/program.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "fullbore/autodiff/backward.h"
#include "fullbore/base/error.h"
#include "fullbore/base/philox.h"
#include "fullbore/device/interpret.h"
#include "fullbore/ops/ops.h"
#include "tests/support/allocation_counter.h"
#include "tests/support/device.h"
#include "tests/support/program_check.h"

namespace fullbore {
namespace {

using testing_support::cpu_device;
using testing_support::Edited;

using testing_support::check_against_oracle;
using testing_support::compare_bits;
using testing_support::run_graph;

std::vector<Literal> random_inputs(const Graph& graph, uint64_t seed) {
  PhiloxStream draws(seed);
  std::vector<Literal> inputs;
  for (const Graph::Input& input : graph.inputs()) {
    Literal literal(graph.type(input.value));
    for (int64_t i = 0; i < literal.elements(); ++i)
      literal.put(i, literal.floating() ? draws.normal() : static_cast<double>(draws.below(3)));
    literal.round();
    inputs.push_back(std::move(literal));
  }
  return inputs;
}

void expect_oracle(const Graph& graph, const CompileOptions& options = {}) {
  const std::shared_ptr<Device> device = cpu_device(2);
  EXPECT_EQ(check_against_oracle(graph, random_inputs(graph, 7), device, options), "");
}

// A small regression with everything a step has: State replaced in place, moments, a loop over
// recurrent state, gradients through it, random numbers, results.
Graph recurrent_training_step() {
  GraphBuilder builder("train");
  const Tensor x = builder.input("x", Role::batch, {DType::f32, {6, 5, 16}});
  const Tensor y = builder.input("y", Role::batch, {DType::f32, {5, 16}});
  const Tensor w = builder.input("w", Role::parameter, {DType::f32, {16, 16}});
  const Tensor m = builder.input("m", Role::moment, {DType::f32, {16, 16}});
  const Tensor seed = builder.input("seed", Role::control, {DType::i64, {}});
  const Tensor step = builder.input("step", Role::control, {DType::i64, {}});
  const LoopResult result =
      loop(builder, {zeros_like(y)}, {x}, {.iterations = 6}, [&](const LoopBody& body) {
        const Tensor h = tanh(matmul(body.carried[0], w) + body.slices[0]);
        return IterationResults{{h}, {h}};
      });
  const Tensor noisy = dropout(result.carried[0], 0.25, {seed, step, 3});
  const Tensor error = noisy - y;
  const Tensor loss =
      reduce_mean(error * error, {0, 1}) + 0.1 * reduce_mean(result.stacked[0], {0, 1, 2});
  const std::vector<Tensor> wanted = {w};
  const Tensor g = gradient(loss, wanted)[0];
  const Tensor next_m = m * 0.9 + g;
  builder.output("loss", loss);
  builder.output("w", w - next_m * 0.1, 2);
  builder.output("m", next_m, 3);
  builder.output("step", step + 1.0, 5);
  return builder.take();
}

TEST(Program, RecurrentStepEqualsTheOracle) { expect_oracle(recurrent_training_step()); }

TEST(Program, ATableOfManyNumbersIsReadWhateverItsSize) {
  constexpr int64_t kNumbers = 20000;
  GraphBuilder builder("table");
  const Tensor x = builder.input("x", Role::batch, {DType::f32, {3, kNumbers}});
  std::vector<double> values;
  for (int64_t i = 0; i < kNumbers; ++i) values.push_back(static_cast<double>(i % 977));
  builder.output("y", x + constant(builder, {DType::f32, {kNumbers}}, values));
  expect_oracle(builder.take());
}

TEST(Program, ReuseOfMemoryAndThreadPoolSizeDoNotChangeBits) {
  const Graph graph = recurrent_training_step();
  const std::vector<Literal> inputs = random_inputs(graph, 3);
  const std::vector<Literal> apart =
      run_graph(graph, inputs, cpu_device(1), {.reuse_memory = false});
  for (int workers : {1, 2, 3}) {
    const std::shared_ptr<Device> device = cpu_device(workers);
    EXPECT_EQ(compare_bits(apart, run_graph(graph, inputs, device, {})), "") << workers;
  }
}

// Two shapes of one step, by turns; the one compiled later makes the arena larger.
TEST(Program, ProgramsThatShareAnArenaMakeTheSameBits) {
  const auto step_of = [](int64_t rows) {
    GraphBuilder builder("rows");
    const Tensor x = builder.input("x", Role::batch, {DType::f32, {rows, 64}});
    const Tensor w = builder.input("w", Role::parameter, {DType::f32, {64, 64}});
    const Tensor y = matmul(tanh(matmul(x, w)), w);
    builder.output("w", w + 0.01 * reduce_mean(y * y, {0, 1}), 1);
    builder.output("sum", reduce_sum(softmax(y), {0}));
    return builder.take();
  };
  const Graph graphs[] = {step_of(4), step_of(300), step_of(32)};
  const auto run = [&](bool shared) {
    State state(state_entries(graphs[0]), cpu_device(2));
    PhiloxStream draws(5);
    for (float& value : Edited<float>(state, "w")) value = static_cast<float>(0.1 * draws.normal());
    const auto arena = shared ? std::make_shared<Arena>(state.device()) : nullptr;
    std::vector<Program> programs;
    int64_t most = 0;
    for (const Graph& graph : graphs) {
      programs.push_back(Program::compile(graph, state, {}, nullptr, arena));
      most = std::max(most, programs.back().plan().arena_bytes);
    }
    if (shared) {
      EXPECT_EQ(arena->bytes(), most);
    }
    std::vector<float> bits;
    alignas(64) static float batch[300 * 64];
    for (const size_t which : {0, 1, 2, 1, 0, 0, 2}) {
      for (float& value : batch) value = static_cast<float>(draws.normal());
      const void* const pointers[] = {batch};
      programs[which].run(pointers);
      const std::vector<float> sum = programs[which].read_result<float>(1);
      bits.insert(bits.end(), sum.begin(), sum.end());
    }
    std::ranges::copy(state.read<float>("w"), std::back_inserter(bits));
    return bits;
  };
  EXPECT_EQ(run(true), run(false));
}

// Values that change places: each new value is read from the old one, whatever the order.
TEST(Program, StateMayChangePlaces) {
  GraphBuilder builder("swap");
  const Tensor a = builder.input("a", Role::recurrent, {DType::f32, {3}});
  const Tensor b = builder.input("b", Role::recurrent, {DType::f32, {3}});
  const Tensor c = builder.input("c", Role::recurrent, {DType::f32, {3}});
  builder.output("a", b, 0);
  builder.output("b", a, 1);
  builder.output("c", a + c, 2);
  builder.output("sum", a + b);
  builder.output("old", a);
  const Graph graph = builder.take();
  expect_oracle(graph);
  const std::vector<Literal> inputs = random_inputs(graph, 5);
  const std::shared_ptr<Device> device = cpu_device(1);
  const std::vector<Literal> outputs = run_graph(graph, inputs, device, {});
  EXPECT_EQ(outputs[0].reals(), inputs[1].reals());
  EXPECT_EQ(outputs[1].reals(), inputs[0].reals());
  EXPECT_EQ(outputs[4].reals(), inputs[0].reals());
}

TEST(Program, CarriedValuesMayChangePlaces) {
  GraphBuilder builder("fibonacci");
  const Tensor a = builder.input("a", Role::batch, {DType::i64, {2}});
  const Tensor b = builder.input("b", Role::batch, {DType::i64, {2}});
  const LoopResult result = loop(builder, {a, b}, {}, {.iterations = 9}, [](const LoopBody& body) {
    return IterationResults{{body.carried[1], body.carried[0] + body.carried[1]},
                            {body.carried[0]}};
  });
  builder.output("a", result.carried[0]);
  builder.output("stacked", result.stacked[0]);
  const Graph graph = builder.take();
  const std::shared_ptr<Device> device = cpu_device(2);
  const std::vector<Literal> inputs = {Literal::of({DType::i64, {2}}, {0, 1}),
                                       Literal::of({DType::i64, {2}}, {1, 3})};
  const std::vector<Literal> outputs = run_graph(graph, inputs, device, {});
  EXPECT_EQ(outputs[0].integers(), (std::vector<int64_t>{34, 123 - 0}));
  EXPECT_EQ(compare_bits(outputs, interpret(graph, inputs)), "");
}

// Every form of loop with small and large bodies (one worker walks the small ones alone).
TEST(Program, LoopFormsEqualTheOracle) {
  for (int64_t width : {3, 20000})
    for (bool reverse : {false, true})
      for (int form = 0; form < 3; ++form) {
        GraphBuilder builder("forms");
        const Tensor x = builder.input("x", Role::batch, {DType::f32, {5, width}});
        const Tensor limit = builder.input("limit", Role::batch, {DType::i64, {}});
        LoopOptions options{.iterations = 5, .reverse = reverse};
        if (form == 1) options.count = limit;
        if (form == 2 && reverse) continue;  // until counts upwards
        const LoopResult result = loop(builder, {full(builder, {DType::f32, {width}}, 1)}, {x},
                                       options, [&](const LoopBody& body) {
                                         const Tensor h = body.carried[0] * 0.5 + body.slices[0];
                                         IterationResults step{{h}, {h, body.index}};
                                         if (form == 2)
                                           step.stop = greater_equal(body.index, limit);
                                         return step;
                                       });
        for (Tensor t : result.stacked) builder.output("s" + std::to_string(t.value().id), t);
        builder.output("h", result.carried[0]);
        if (form == 2) builder.output("executed", result.executed);
        const Graph graph = builder.take();
        std::vector<Literal> inputs = random_inputs(graph, 11);
        inputs[1].put(0, 2);
        const std::shared_ptr<Device> device = cpu_device(2);
        EXPECT_EQ(check_against_oracle(graph, inputs, device, {}), "")
            << "width " << width << " form " << form;
      }
}

TEST(Program, LoopOfNoIterationsKeepsInitialValues) {
  GraphBuilder builder("none");
  const Tensor x = builder.input("x", Role::batch, {DType::f32, {4}});
  const LoopResult result = loop(builder, {x}, {}, {.iterations = 0}, [](const LoopBody& body) {
    return IterationResults{{body.carried[0] * 2.0}, {body.carried[0]}};
  });
  builder.output("x", result.carried[0]);
  builder.output("rows", result.stacked[0]);
  expect_oracle(builder.take());
}

TEST(Program, NestedLoopsEqualTheOracle) {
  GraphBuilder builder("nested");
  const Tensor x = builder.input("x", Role::batch, {DType::f32, {3, 4, 8}});
  const LoopResult outer = loop(builder, {full(builder, {DType::f32, {8}}, 0)}, {x},
                                {.iterations = 3}, [&](const LoopBody& body) {
                                  const LoopResult inner = loop(
                                      body.carried[0].builder(), {body.carried[0]},
                                      {body.slices[0]}, {.iterations = 4}, [&](const LoopBody& in) {
                                        const Tensor h = tanh(in.carried[0] + in.slices[0]);
                                        return IterationResults{{h}, {h + body.carried[0]}};
                                      });
                                  return IterationResults{{inner.carried[0]}, {inner.stacked[0]}};
                                });
  builder.output("h", outer.carried[0]);
  builder.output("rows", outer.stacked[0]);
  expect_oracle(builder.take());
}

TEST(Program, NullDeviceRunsEveryLaunchList) {
  const Graph graph = recurrent_training_step();
  const std::vector<Literal> inputs = random_inputs(graph, 1);
  EXPECT_EQ(run_graph(graph, inputs, open_device("null", 2), {}).size(), graph.outputs().size());
}

TEST(Program, RefusesMissingAndForeignState) {
  GraphBuilder builder("step");
  const Tensor w = builder.input("w", Role::parameter, {DType::f32, {3}});
  builder.output("w", w * 2.0, 0);
  const Graph graph = builder.take();
  State empty({}, cpu_device(1));
  State foreign({{"w", Role::parameter, {DType::f32, {4}}}}, cpu_device(1));
  try {
    Program::compile(graph, empty);
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(), "the program 'step' needs State 'w' f32[3], which does not exist");
  }
  try {
    Program::compile(graph, foreign);
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(), "the program 'step' needs State 'w' as f32[3], it is f32[4]");
  }
}

// The planner's figure is what is allocated: every buffer lies inside, and some buffer ends there.
// What a program is asked for or given by mistake is refused by its name, with what there is.
TEST(Program, RefusesWhatItHasNot) {
  GraphBuilder builder("step");
  const Tensor x = builder.input("x", Role::batch, {DType::f32, {4}});
  const Tensor y = builder.input("y", Role::batch, {DType::f32, {4}});
  const Tensor w = builder.input("weight", Role::parameter, {DType::f32, {4}});
  builder.output("loss", reduce_sum(x * y * w, {0}));
  builder.output("pairs", x * y);
  const Graph graph = builder.take();
  State state(state_entries(graph), cpu_device(1));
  Program program = Program::compile(graph, state);
  alignas(64) float values[32] = {};
  const auto refusal = [](const auto& action) -> std::string {
    try {
      action();
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  };
  const SourceLoc loc{"models/mine.cpp", 12};
  const std::string where = " (models/mine.cpp:12)";
  const auto run = [&](std::vector<const void*> batch) {
    return refusal([&] { program.run(batch, loc); });
  };
  const std::string its_batch = ". Its batch is x f32[4], y f32[4]" + where;
  EXPECT_EQ(run({values, values + 16}), "");
  EXPECT_EQ(run({values}),
            "the program 'step': 1 pointers are given for a batch of 2 fields" + its_batch);
  EXPECT_EQ(run({values, values + 1}),
            "the program 'step': the memory of field 'y', f32[4], is not aligned to 64 bytes" +
                its_batch);
  EXPECT_EQ(run({nullptr, values}),
            "the program 'step': no memory is given for field 'x', f32[4]" + its_batch);
  EXPECT_EQ(refusal([&] { static_cast<void>(program.scalar("lss", loc)); }),
            "the program 'step' has no result 'lss'. Did you mean 'loss'? Its results are loss, "
            "pairs" +
                where);
  EXPECT_EQ(refusal([&] { static_cast<void>(program.scalar("pairs", loc)); }),
            "result 'pairs' is f32[4], which is no single number: read_result() reads it" + where);
  EXPECT_EQ(program.read_result<float>("pairs").size(), 4U);
  EXPECT_EQ(refusal([&] { static_cast<void>(program.read_result<int32_t>("pairs", loc)); }),
            "result 'pairs' is f32[4], of elements of 4 bytes, and was asked for as another type, "
            "of 4 bytes" +
                where);
  EXPECT_EQ(refusal([&] { static_cast<void>(program.read_result<float>("pears", loc)); }),
            "the program 'step' has no result 'pears'. Did you mean 'pairs'? Its results are loss, "
            "pairs" +
                where);
  for (const int none : {-1, 2})
    EXPECT_EQ(refusal([&] { static_cast<void>(program.read_result<float>(none, loc)); }),
              fmt::format("the program 'step' has no result {}: it has 2 outputs{}", none, where));
  EXPECT_EQ(
      refusal([&] { program.read_result(1, std::as_writable_bytes(std::span(values)), 0, loc); }),
      "128 bytes at 0 of result 'pairs' were asked for, which has 16" + where);
  // By default it is the caller's line.
  const int line = __LINE__ + 1;
  const std::string here = refusal([&] { static_cast<void>(program.scalar("lss")); });
  EXPECT_TRUE(here.ends_with(fmt::format("test_program.cpp:{})", line))) << here;
  EXPECT_EQ(refusal([&] { static_cast<void>(state.read<float>("weigth", loc)); }),
            "there is no State 'weigth'. Did you mean 'weight'? (models/mine.cpp:12)");
  const std::string weight = "State 'weight' is " + state.entries()[0].type.text();
  EXPECT_EQ(refusal([&] { static_cast<void>(state.read<int32_t>("weight", loc)); }),
            weight +
                ", of elements of 4 bytes, and was asked for as another type, of 4 bytes "
                "(models/mine.cpp:12)");
  EXPECT_EQ(refusal([&] { state.write("weight", std::vector<double>(1), loc); }),
            weight +
                ", of elements of 4 bytes, and was asked for as another type, of 8 bytes "
                "(models/mine.cpp:12)");
  const auto bytes = static_cast<size_t>(state.entries()[0].type.bytes());
  EXPECT_EQ(refusal([&] { state.write("weight", std::vector<float>(bytes / 4 + 1), loc); }),
            fmt::format("{}, {} bytes, and {} are to be written (models/mine.cpp:12)", weight,
                        bytes, bytes + 4));
  EXPECT_EQ(state.read<std::byte>("weight").size(), bytes);
}

TEST(Program, SharedPeakCountsStateAndTheLargestArenaOnce) {
  Plan small;
  small.arena_bytes = 100;
  small.state_bytes = 1000;
  small.batch_bytes = 10;
  small.result_bytes = 1;
  Plan large = small;
  large.arena_bytes = 700;
  large.constants.resize(5);
  const Plan* const plans[] = {&small, &large};
  EXPECT_EQ(shared_peak_bytes(plans), 1000 + 700 + 2 * 11 + 5);
  EXPECT_EQ(shared_peak_bytes(std::span(plans).first(1)), small.peak_bytes());
}

TEST(Program, PlannedPeakIsTheSizeOfTheArena) {
  const Graph graph = recurrent_training_step();
  State state(state_entries(graph), cpu_device(2));
  const Program program = Program::compile(graph, state);
  const Plan& plan = program.plan();
  int64_t end = 0;
  for (const Buffer& buffer : plan.buffers) {
    if (buffer.space != Space::arena) continue;
    EXPECT_GE(buffer.offset, 0);
    end = std::max(end, buffer.offset + buffer.bytes);
  }
  EXPECT_LE(end, plan.arena_bytes);
  EXPECT_GT(end, plan.arena_bytes - 64);
  EXPECT_EQ(plan.state_bytes, state.bytes());
}

TEST(Program, ReplayAllocatesNothing) {
  const Graph graph = recurrent_training_step();
  State state(state_entries(graph), cpu_device(2));
  Program program = Program::compile(graph, state);
  alignas(64) static float x[6 * 5 * 16];
  alignas(64) static float y[5 * 16];
  PhiloxStream draws(1);
  for (float& value : x) value = static_cast<float>(draws.normal());
  for (float& value : y) value = static_cast<float>(draws.normal());
  const void* const batch[] = {x, y};
  for (int warm_up = 0; warm_up < 10; ++warm_up) program.run(batch);
  const int64_t resident = resident_bytes();
  const int64_t allocations = allocation_count();
  for (int replay = 0; replay < 10000; ++replay) program.run(batch);
  EXPECT_EQ(allocation_count(), allocations);
  EXPECT_LE(resident_bytes() - resident, 1 << 20);
}

TEST(AllocationCounter, CountsWhatTheProcessAllocates) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers bring their own malloc";
#endif
  const int64_t before = allocation_count();
  std::vector<std::string> lines(10, std::string(100, 'x'));
  EXPECT_GE(allocation_count() - before, 11);
  EXPECT_EQ(lines.size(), 10U);
}

}  // namespace
}  // namespace fullbore
