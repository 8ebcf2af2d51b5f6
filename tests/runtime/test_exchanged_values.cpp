// Carried values whose two buffers change places, and rows that are zeroed behind a loop, on every device.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "fullbore/autodiff/backward.h"
#include "fullbore/base/tensor_memory.h"
#include "fullbore/device/interpret.h"
#include "fullbore/ops/ops.h"
#include "tests/support/device.h"
#include "tests/support/program_check.h"

namespace fullbore {
namespace {

using testing_support::compare_bits;
using testing_support::cpu_device;
using testing_support::run_graph;

constexpr int64_t kMost = 5;

/// How many iterations are made: `count` of kMost, or until `count` of them were made.
struct Form {
  int64_t count = kMost;
  bool until = false;
  bool reverse = false;
};

// A reversal reads what it would overwrite, so nothing of this is made in place: a value by itself, two that are exchanged,
// one that an inner loop captures whole and slices while it carries another, which starts from an outer one's value and is
// the outer one's next, and one that decides when to stop.
Graph program(const Form& form, int64_t width, DType dtype) {
  GraphBuilder builder("exchange");
  const Tensor x = builder.input("x", Role::batch, {dtype, {4, width}});
  const Tensor w = builder.input("w", Role::batch, {dtype, {width}});
  const Tensor count = builder.input("count", Role::batch, {DType::i64, {}});
  const Tensor none = builder.input("none", Role::batch, {DType::boolean, {}});
  LoopOptions options{.iterations = kMost, .reverse = form.reverse};
  if (!form.until) options.count = count;
  const LoopResult result =
      loop(builder, {x, x * 0.5, sin(x), w, none}, {}, options, [&](const LoopBody& body) {
        GraphBuilder& in = body.index.builder();
        const Tensor a = body.carried[0], b = body.carried[1], c = body.carried[2];
        const LoopResult inner =
            loop(in, {body.carried[3]}, {c}, {.iterations = 4}, [&](const LoopBody& inside) {
              const Tensor whole = reverse(squeeze(slice(c, 0, 1, 2), 0), 0);
              const Tensor next = reverse(inside.carried[0], 0) * 0.5 + inside.slices[0] + whole;
              return IterationResults{.carried = {next}, .stacked = {next * whole}};
            });
        IterationResults step;
        step.carried = {reverse(a, 0) + inner.stacked[0], c, b * 0.5 + reverse(c, 1),
                        inner.carried[0], greater(body.index + 2.0, count)};
        step.stacked = {inner.stacked[0], a};
        // The carried one, before it is replaced.
        if (form.until) step.stop = body.carried[4];
        return step;
      });
  for (size_t i = 0; i < 4; ++i) builder.output(fmt::format("carried{}", i), result.carried[i]);
  for (size_t i = 0; i < 2; ++i) builder.output(fmt::format("stacked{}", i), result.stacked[i]);
  if (form.until) builder.output("executed", result.executed);
  const Tensor wanted[] = {w};
  const Tensor loss = reduce_sum(result.carried[0] * result.carried[3], {0, 1}) +
                      reduce_sum(result.stacked[0], {0, 1, 2});
  builder.output("dw", gradient(loss, wanted)[0]);
  return builder.take();
}

std::vector<Literal> inputs_of(const Graph& graph, int64_t count) {
  std::vector<Literal> inputs;
  for (const Graph::Input& input : graph.inputs()) {
    Literal literal(graph.type(input.value));
    for (int64_t i = 0; literal.floating() && i < literal.elements(); ++i)
      literal.put(i, static_cast<double>(i * 37 % 19 - 9) / 16);
    if (input.name == "count") literal.integers()[0] = count;
    inputs.push_back(std::move(literal));
  }
  return inputs;
}

int64_t exchanged(const std::vector<PlannedLaunch>& launches) {
  int64_t found = 0;
  for (const PlannedLaunch& launch : launches)
    if (launch.loop)
      found += exchanged(launch.loop->body) +
               std::ranges::count_if(launch.loop->carries, &LoopPlan::Carry::exchanged);
  return found;
}

std::vector<Form> forms() {
  std::vector<Form> all;
  for (const bool reverse : {false, true}) {
    for (int64_t count = 0; count <= kMost; ++count)
      all.push_back({.count = count, .reverse = reverse});
    for (int64_t count = 1; count <= kMost; ++count)
      all.push_back({.count = count, .until = true, .reverse = reverse});
  }
  return all;
}

std::string text(const Form& form) {
  return fmt::format("{}{}{}", form.until ? "until " : "count ", form.count,
                     form.reverse ? " reversed" : "");
}

// Of 40000 elements, which the whole pool works on, and of 12, which one worker does.
TEST(ExchangedValues, AreTheBitsOfThePlanThatCopies) {
  for (const int64_t width : {3, 10000})
    for (const Form& form : forms()) {
      const Graph graph = program(form, width, DType::f32);
      const std::vector<Literal> inputs = inputs_of(graph, form.count);
      const std::vector<Literal> copied =
          run_graph(graph, inputs, cpu_device(1), {.reuse_memory = false});
      for (const int threads : {1, 2, 3, 4})
        EXPECT_EQ(compare_bits(copied, run_graph(graph, inputs, cpu_device(threads), {})), "")
            << text(form) << ", " << threads << " threads, width " << width;
    }
}

TEST(ExchangedValues, EqualTheInterpreter) {
  for (const Form& form : forms()) {
    const Graph graph = program(form, 3, DType::f64);
    const std::vector<Literal> inputs = inputs_of(graph, form.count);
    const std::vector<Literal> wanted = interpret(graph, inputs);
    CompileOptions as_is;
    const std::vector<Literal> reference =
        run_graph(graph, inputs, open_device("reference"), as_is);
    const std::vector<Literal> cpu = run_graph(graph, inputs, cpu_device(2), as_is);
    for (size_t i = 0; i < wanted.size(); ++i)
      for (int64_t e = 0; e < wanted[i].elements(); ++e) {
        EXPECT_NEAR(wanted[i].at(e), reference[i].at(e), 1e-10) << text(form) << " output " << i;
        EXPECT_NEAR(wanted[i].at(e), cpu[i].at(e), 1e-10) << text(form) << " output " << i;
      }
  }
}

// What the last run has left in the arena, NaNs here, reaches nobody: neither rows that were not made nor the second place
// of what is carried.
TEST(ExchangedValues, WhatNoIterationMadeIsNotRead) {
  for (const int64_t width : {3, 10000})
    for (const Form& form : forms()) {
      const Graph graph = program(form, width, DType::f32);
      const std::vector<Literal> inputs = inputs_of(graph, form.count);
      State state(state_entries(graph), cpu_device(2));
      const auto arena = std::make_shared<Arena>(state.device());
      Program program = Program::compile(graph, state, {}, nullptr, arena);
      std::vector<TensorMemory> memory;
      std::vector<const void*> batch;
      for (const Literal& input : inputs) {
        const std::vector<char> bytes = input.bytes();
        memory.push_back(allocate_tensor_memory(static_cast<int64_t>(bytes.size())));
        std::ranges::copy(bytes, static_cast<char*>(static_cast<void*>(memory.back().get())));
        batch.push_back(memory.back().get());
      }
      const std::vector<std::byte> nans(static_cast<size_t>(arena->bytes()), std::byte{0xFF});
      state.device().write(arena->address(), nans);
      program.run(batch);
      const std::vector<Literal> wanted = run_graph(graph, inputs, cpu_device(2), {});
      for (size_t i = 0; i < wanted.size(); ++i) {
        const std::vector<std::byte> found = program.read_result<std::byte>(static_cast<int>(i));
        const std::vector<char> bytes = wanted[i].bytes();
        EXPECT_TRUE(std::ranges::equal(std::as_bytes(std::span(bytes)), found))
            << text(form) << " output " << i << " width " << width;
      }
    }
}

// The device that follows no address looks at every operand of every launch, in both of its places.
TEST(ExchangedValues, LieInMemoryWhereverTheyAre) {
  const Graph graph = program({}, 7, DType::f32);
  State state(state_entries(graph), open_device("null", 2));
  Program program = Program::compile(graph, state);
  EXPECT_GE(exchanged(program.plan().launches), 3);
  std::vector<TensorMemory> memory;
  std::vector<const void*> batch;
  for (const Literal& input : inputs_of(graph, kMost)) {
    memory.push_back(allocate_tensor_memory(static_cast<int64_t>(input.bytes().size())));
    batch.push_back(memory.back().get());
  }
  program.run(batch);
}

}  // namespace
}  // namespace fullbore
