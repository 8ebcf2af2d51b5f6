// Stores of rows of which as many are alive as a count says: nothing beyond reaches a result, and nothing there is filled.
#include "fullbore/ops/counted_rows.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "fullbore/autodiff/backward.h"
#include "fullbore/base/philox.h"
#include "fullbore/base/tensor_memory.h"
#include "fullbore/device/interpret.h"
#include "fullbore/ops/map_rows.h"
#include "fullbore/passes/pass.h"
#include "fullbore/runtime/program.h"
#include "tests/support/device.h"
#include "tests/support/program_check.h"

namespace fullbore {
namespace {

using testing_support::compare_bits;
using testing_support::cpu_device;
using testing_support::run_graph;

/// Numbers of a random store.
struct StoreSize {
  int64_t capacity, width, tile, steps, stores;
  bool reverse = false;
};

/// How a store begins, and whether gathers are told how many rows there are.
enum class Kind : uint8_t { counted, whole };

/// Networks on the first rows of a store, which begins with zeros, again and again until few are left: after each step every
/// `kept`th row is kept, and the last one twice. The sum of what they make, and its gradients.
Graph step(const StoreSize& size, Kind kind, DType dtype) {
  GraphBuilder builder("step");
  const int64_t capacity = size.capacity;
  const TensorType store{dtype, {capacity, size.width}};
  const Tensor first = builder.input("count", Role::batch, {DType::i64, {}});
  const Tensor kept = builder.input("kept", Role::batch, {DType::i32, {}});
  const Tensor weight = builder.input("weight", Role::batch, {dtype, {size.width, size.width}});
  const Tensor bias = builder.input("bias", Role::batch, {dtype, {size.width}});
  std::vector<Tensor> begin;
  for (int64_t i = 0; i < size.stores; ++i)
    begin.push_back(kind == Kind::counted ? zero_rows(builder, store, first)
                                          : full(builder, store, 0));
  begin.push_back(first);
  begin.push_back(full(builder, {dtype, {}}, 0));
  const LoopResult result = loop(
      builder, begin, {}, {.iterations = size.steps, .reverse = size.reverse},
      [&](const LoopBody& body) {
        GraphBuilder& in = body.index.builder();
        const Tensor count = body.carried[static_cast<size_t>(size.stores)];
        std::vector<Tensor> rows(body.carried.begin(), body.carried.begin() + size.stores);
        const std::vector<Tensor> made =
            map_rows(count, size.tile, rows, [&](const std::vector<Tensor>& tile) {
              std::vector<Tensor> next;
              Tensor sum;
              for (const Tensor& x : tile) {
                next.push_back(tanh(matmul(x, weight) + bias));
                const Tensor row = reduce_sum(next.back(), {1});
                sum = sum.valid() ? sum * row : row;
              }
              next.push_back(sum);
              return next;
            });
        const Tensor row = iota(in, {DType::i32, {capacity}}, 0);
        const Tensor stays =
            logical_and(less(row, cast(count, DType::i32)), equal(remainder(row, kept), 0.0));
        const Tensor stay = cast(stays, DType::i32);
        const Tensor place = select(stays, cumsum(stay, 0, true), -1.0);
        const Tensor staying = reduce_sum(stay, {0});
        const Tensor next = cast(staying, DType::i64);
        const Tensor source = select(less(row, staying), scatter_add(row, place, capacity), -1.0);
        const GatherSumCounts counts =
            kind == Kind::counted ? GatherSumCounts{next, count} : GatherSumCounts{};
        IterationResults results;
        for (int64_t i = 0; i < size.stores; ++i)
          results.carried.push_back(gather_sum(made[static_cast<size_t>(i)], expand_dims(source, 1),
                                               expand_dims(place, 1), counts));
        results.carried.push_back(next);
        results.carried.push_back(body.carried.back() + reduce_sum(made.back(), {0}));
        results.stop = less(next, 3.0);
        return results;
      });
  const Tensor loss = result.carried.back();
  const Tensor wanted[] = {weight, bias};
  builder.output("loss", loss);
  for (const Tensor& d : gradient(loss, wanted)) builder.output("", d);
  return builder.take();
}

std::vector<Literal> inputs_of(const Graph& graph, int64_t count, int64_t kept, uint64_t seed) {
  PhiloxStream draws(seed);
  std::vector<Literal> inputs;
  for (const Graph::Input& input : graph.inputs()) {
    Literal literal(graph.type(input.value));
    for (int64_t i = 0; literal.floating() && i < literal.elements(); ++i)
      literal.put(i, 0.3 * draws.normal());
    if (input.name == "count") literal.integers()[0] = count;
    if (input.name == "kept") literal.integers()[0] = kept;
    literal.round();
    inputs.push_back(std::move(literal));
  }
  return inputs;
}

// The oracle has NaN in all rows that are not alive, the processor what other values left there.
TEST(CountedRows, HaveTheBitsOfStoresFilledWhole) {
  PhiloxStream draws(3);
  const auto draw = [&](int64_t least, int64_t most) {
    return least + static_cast<int64_t>(draws.below(static_cast<uint64_t>(most - least + 1)));
  };
  for (int round = 0; round < 12; ++round) {
    StoreSize size{.capacity = draw(1, 90),
                   .width = draw(1, 20),
                   .tile = 0,
                   .steps = draw(1, 6),
                   .stores = draw(1, 3),
                   .reverse = round % 4 == 3};
    size.tile = draw(1, size.capacity);
    const int64_t count = draw(0, size.capacity), kept = draw(1, 3);
    const std::string what =
        fmt::format("round {}: {} of {} rows of {} in tiles of {}, {} steps of {} stores", round,
                    count, size.capacity, size.width, size.tile, size.steps, size.stores);
    const auto inputs = [&](const Graph& graph) {
      return inputs_of(graph, count, kept, static_cast<uint64_t>(round));
    };
    const Graph exact = step(size, Kind::counted, DType::f64);
    EXPECT_EQ(compare_bits(interpret(exact, inputs(exact)),
                           interpret(step(size, Kind::whole, DType::f64), inputs(exact))),
              "")
        << what;
    for (const DType dtype : {DType::f64, DType::f32}) {
      const Graph counted = step(size, Kind::counted, dtype);
      const std::vector<Literal> wanted =
          run_graph(step(size, Kind::whole, dtype), inputs(counted), cpu_device(1), {});
      for (const int threads : {1, 2, 3})
        EXPECT_EQ(
            compare_bits(wanted, run_graph(counted, inputs(counted), cpu_device(threads), {})), "")
            << what << ", " << threads << " threads";
    }
  }
}

/// A program on an arena of its own, and memory for its inputs.
class StoreRun {
 public:
  StoreRun(const Graph& graph, const std::vector<Literal>& inputs, int threads)
      : state_(state_entries(graph), cpu_device(threads)),
        arena_(std::make_shared<Arena>(state_.device())),
        program_(Program::compile(graph, state_, {}, nullptr, arena_)) {
    for (const Literal& input : inputs) {
      const std::vector<char> bytes = input.bytes();
      memory_.push_back(allocate_tensor_memory(static_cast<int64_t>(bytes.size())));
      std::ranges::copy(bytes, memory_.back().get());
      batch_.push_back(memory_.back().get());
    }
  }
  void run() { program_.run(batch_); }
  void fill_arena_with_nan() {
    const std::vector<std::byte> nans(static_cast<size_t>(arena_->bytes()), std::byte{0xFF});
    state_.device().write(arena_->address(), nans);
  }
  bool has_results(const std::vector<Literal>& wanted) const {
    for (size_t i = 0; i < wanted.size(); ++i) {
      const std::vector<std::byte> found = program_.read_result<std::byte>(static_cast<int>(i));
      const std::vector<char> bytes = wanted[i].bytes();
      if (!std::ranges::equal(std::as_bytes(std::span(bytes)), found)) return false;
    }
    return true;
  }
  const Arena& arena() const { return *arena_; }

 private:
  State state_;
  std::shared_ptr<Arena> arena_;
  Program program_;
  std::vector<TensorMemory> memory_;
  std::vector<const void*> batch_;
};

TEST(CountedRows, WhatTheArenaHeldReachesNoResult) {
  for (const int64_t count : {0, 1, 37, 64}) {
    const StoreSize size{.capacity = 64, .width = 12, .tile = 16, .steps = 4, .stores = 2};
    const Graph graph = step(size, Kind::counted, DType::f32);
    const std::vector<Literal> inputs = inputs_of(graph, count, 2, 5);
    const std::vector<Literal> wanted =
        run_graph(step(size, Kind::whole, DType::f32), inputs, cpu_device(2), {});
    StoreRun run(graph, inputs, 2);
    run.fill_arena_with_nan();
    run.run();
    EXPECT_TRUE(run.has_results(wanted)) << count;
  }
}

int64_t fills(const Graph& graph, const Shape& shape) {
  int64_t found = 0;
  for (const Node& node : graph.nodes()) {
    found += node.op->name == "broadcast_to" && graph.type(node.outputs[0]).shape == shape;
    if (node.body) found += fills(*node.body, shape);
  }
  return found;
}

// Neither what a store begins with nor the gradient of what it ends with is filled whole.
TEST(CountedRows, NoStoreIsFilled) {
  const StoreSize size{.capacity = 512, .width = 24, .tile = 32, .steps = 4, .stores = 2};
  const Target target = cpu_device(2)->target();
  const auto filled = [&](Kind kind) {
    return fills(run_passes(step(size, kind, DType::f32), target), {size.capacity, size.width});
  };
  EXPECT_EQ(filled(Kind::counted), 0);
  EXPECT_GE(filled(Kind::whole), 4);
}

// Of an arena of many times as much, live rows alone are memory of the machine.
TEST(CountedRows, TakeTheirOwnMemoryAlone) {
  const StoreSize size{
      .capacity = 65536, .width = 64, .tile = 64, .steps = 6, .stores = 2};  // 16 MiB each
  const Graph graph = step(size, Kind::counted, DType::f32);
  StoreRun run(graph, inputs_of(graph, 256, 1, 1), 2);
  run.run();
  const Arena& arena = run.arena();
  const auto bytes = static_cast<size_t>(arena.bytes());
  ASSERT_GT(bytes, size_t{200} << 20);
  const auto page_bytes = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> resident((bytes + page_bytes - 1) / page_bytes);
  ASSERT_EQ(::mincore(reinterpret_cast<void*>(arena.address().value), bytes, resident.data()), 0);
  const auto pages = std::count_if(resident.begin(), resident.end(),
                                   [](unsigned char page) { return (page & 1) != 0; });
  EXPECT_GT(pages, 0);
  EXPECT_LT(static_cast<size_t>(pages) * page_bytes, size_t{24} << 20);
}

}  // namespace
}  // namespace fullbore
