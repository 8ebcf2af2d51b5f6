#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "../support/program_check.h"
#include "fullbore/autodiff/backward.h"
#include "fullbore/device/interpret.h"
#include "fullbore/ops/ops.h"
#include "tests/support/device.h"
#include "tests/support/gradcheck.h"

/// gather_sum on part of its rows, its gradient, and their bits on any number of threads.
namespace fullbore {
namespace {

using testing_support::cpu_device;

Literal rounded_normal(const TensorType& type, uint64_t stream) {
  Literal literal = random_literal(type, 5, stream);
  literal.round();
  return literal;
}

// Small whole numbers, of which every sum here is exact in every dtype.
Literal small_numbers(const TensorType& type) {
  Literal literal = random_literal(type, 5, 0);
  for (double& each : literal.reals()) each = std::clamp(std::round(2 * each), -3.0, 3.0);
  return literal;
}

constexpr int64_t kRows = 700, kWidth = 37, kMost = 3;

/// A population: row r is the sum of up to three rows of x, each of which is read by the next rows in turn.
struct Population {
  int64_t made, there;
  std::vector<double> indices, inverse;

  // Three consecutive rows of y share a row of x with each other; as many of x as the count of y lets be read.
  Population(int64_t made_rows, int64_t there_rows) : made(made_rows), there(there_rows) {
    std::vector<std::vector<int64_t>> readers(kRows);
    for (int64_t r = 0; r < kRows; ++r)
      for (int64_t k = 0; k < kMost; ++k) {
        const int64_t row = (r + k * 11) % (kRows + 1) - 1;
        indices.push_back(static_cast<double>(row));
        if (row >= 0) readers[static_cast<size_t>(row)].push_back(r);
      }
    for (auto& each : readers) {
      each.resize(kMost, -1);
      inverse.insert(inverse.end(), each.begin(), each.end());
    }
  }

  // y, where it is defined, and the gradient of its sum of squares by x, where that is.
  Graph graph(DType dtype) const {
    GraphBuilder builder;
    const Tensor x = builder.input("x", Role::batch, {dtype, {kRows, kWidth}});
    const Tensor table = builder.input("indices", Role::batch, {DType::i32, {kRows, kMost}});
    const Tensor back = builder.input("inverse", Role::batch, {DType::i32, {kRows, kMost}});
    const Tensor count = builder.input("count", Role::batch, {DType::i64, {}});
    const Tensor from = builder.input("inverse_count", Role::batch, {DType::i64, {}});
    const Tensor row = iota(builder, {DType::i64, {kRows, 1}}, 0);
    const Tensor y = gather_sum(x, table, back, {count, from});
    const Tensor kept = select(less(row, count), y, 0.0);
    const Tensor loss = reduce_sum(kept * kept, {0, 1});
    const std::vector<Tensor> wanted = {x};
    builder.output("y", kept);
    builder.output("dx", select(less(row, from), gradient(loss, wanted)[0], 0.0));
    return builder.take();
  }
  std::vector<Literal> inputs(DType dtype) const {
    const auto whole = [](double value) { return Literal::of({DType::i64, {}}, {value}); };
    return {small_numbers({dtype, {kRows, kWidth}}),
            Literal::of({DType::i32, {kRows, kMost}}, indices),
            Literal::of({DType::i32, {kRows, kMost}}, inverse), whole(static_cast<double>(made)),
            whole(static_cast<double>(there))};
  }
};

TEST(GatherSum, EqualsTheOracleOnAnyPartOfItsRows) {
  const std::shared_ptr<Device> device = cpu_device(3);
  for (DType dtype : {DType::f64, DType::f32, DType::bf16})
    for (const auto& [made, there] :
         {std::pair<int64_t, int64_t>{kRows, kRows}, {400, 350}, {1, kRows}, {kRows, 0}, {0, 9}}) {
      const Population population(made, there);
      EXPECT_EQ(testing_support::compare_bits(
                    testing_support::run_graph(population.graph(dtype), population.inputs(dtype),
                                               device, {}),
                    interpret(population.graph(dtype), population.inputs(dtype))),
                "")
          << dtype_name(dtype) << ", " << made << " rows of " << there;
    }
}

TEST(GatherSum, HasTheSameBitsOnAnyNumberOfThreads) {
  const Population population(650, 690);
  for (DType dtype : {DType::f64, DType::f32, DType::bf16}) {
    const auto run = [&](int threads) {
      return testing_support::run_graph(population.graph(dtype), population.inputs(dtype),
                                        cpu_device(threads), {});
    };
    const std::vector<Literal> one = run(1);
    for (int threads = 2; threads <= 4; ++threads)
      EXPECT_EQ(testing_support::compare_bits(one, run(threads)), "") << threads;
  }
}

// What lies beyond the counts is not looked at, by the gradient neither.
TEST(GatherSum, ReadsNoRowBeyondItsCounts) {
  const Population population(400, 350);
  std::vector<Literal> inputs = population.inputs(DType::f64);
  const Graph graph = population.graph(DType::f64);
  const std::vector<Literal> expected = interpret(graph, inputs);
  for (int64_t i = 350 * kWidth; i < kRows * kWidth; ++i) inputs[0].put(i, std::nan(""));
  EXPECT_EQ(testing_support::compare_bits(expected, interpret(graph, inputs)), "");
  const std::vector<Literal> made = testing_support::run_graph(graph, inputs, cpu_device(2), {});
  for (const Literal& result : made)
    for (double value : result.reals()) EXPECT_FALSE(std::isnan(value));
}

// Sums by key in the order of records, running counts, and their gradients: one order on any number of threads.
TEST(OrderedSums, HaveTheSameBitsOnAnyNumberOfThreads) {
  constexpr int64_t kRecords = 5000, kKeys = 23;
  for (DType dtype : {DType::f64, DType::f32}) {
    GraphBuilder builder;
    const Tensor x = builder.input("x", Role::batch, {dtype, {kRecords}});
    const Tensor wide = builder.input("wide", Role::batch, {dtype, {kRecords, 65}});
    const Tensor keys = builder.input("keys", Role::batch, {DType::i32, {kRecords}});
    const Tensor sums = scatter_add(x, keys, kKeys), rows = scatter_add(wide, keys, kKeys);
    const Tensor running = cumsum(x, 0, /*exclusive=*/true);
    const Tensor loss = reduce_sum(sums * sums, {0}) + reduce_sum(rows * rows, {0, 1}) +
                        reduce_sum(running * running, {0});
    const std::vector<Tensor> wanted = {x, wide};
    for (Tensor each : {sums, rows, running}) builder.output("", each);
    for (Tensor each : gradient(loss, wanted)) builder.output("", each);
    const Graph graph = builder.take();
    std::vector<double> key;
    for (int64_t i = 0; i < kRecords; ++i) key.push_back(static_cast<double>((i * i + 3) % 29 - 2));
    const std::vector<Literal> inputs = {rounded_normal({dtype, {kRecords}}, 0),
                                         rounded_normal({dtype, {kRecords, 65}}, 1),
                                         Literal::of({DType::i32, {kRecords}}, key)};
    const auto run = [&](int threads) {
      return testing_support::run_graph(graph, inputs, cpu_device(threads), {});
    };
    const std::vector<Literal> one = run(1);
    for (int threads = 2; threads <= 4; ++threads)
      EXPECT_EQ(testing_support::compare_bits(one, run(threads)), "") << threads;

    // The order of sums by key: one addition after the other, in the dtype.
    const auto rounded = [&](double value) {
      return dtype == DType::f32 ? static_cast<double>(static_cast<float>(value)) : value;
    };
    std::vector<double> by_key(kKeys, 0);
    for (size_t i = 0; i < key.size(); ++i) {
      const double value = inputs[0].at(static_cast<int64_t>(i));
      if (key[i] < 0 || key[i] >= kKeys) continue;
      double& sum = by_key[static_cast<size_t>(key[i])];
      sum = rounded(sum + value);
    }
    for (int64_t i = 0; i < kKeys; ++i)
      EXPECT_EQ(one[0].at(i), by_key[static_cast<size_t>(i)]) << dtype_name(dtype);
  }
}

}  // namespace
}  // namespace fullbore
