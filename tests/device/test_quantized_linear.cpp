#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "fullbore/base/philox.h"
#include "fullbore/base/quantize.h"
#include "fullbore/device/cpu/quant/quantized_linear.h"
#include "fullbore/ops/quantized_linear.h"
#include "kernel_runner.h"

/// Matmuls in 8 bits on every kind of unit that this processor has, whichever the device would choose: all make
/// the bits of the arithmetic written down here.
namespace fullbore {
namespace {

using cpu::Int8Unit;
using testing_support::run_kernel_in_all_ways;
using testing_support::RunResult;

/// Numbers of one call, and what must come of them.
class Call {
 public:
  Call(int64_t rows, int64_t columns, int64_t depth)
      : x_({DType::f32, {rows, depth}}),
        weight_({DType::i8, {columns, depth}}),
        scale_({DType::f32, {columns}}) {
    PhiloxStream draws(static_cast<uint64_t>(rows * 1'000'003 + columns * 1009 + depth));
    for (double& x : x_.reals()) x = draws.normal();
    for (int64_t& weight : weight_.integers())
      weight = static_cast<int64_t>(draws.below(255)) - 127;
    for (double& scale : scale_.reals()) scale = draws.uniform(1e-4, 1e-2);
    x_.round();
    scale_.round();
  }

  Literal& x() { return x_; }
  Literal& weight() { return weight_; }

  std::string check(const Int8Unit& unit) const {
    GraphBuilder builder;
    builder.output("y", quantized_linear(builder.input("x", Role::batch, x_.type()),
                                         builder.input("weight", Role::frozen, weight_.type()),
                                         builder.input("scale", Role::frozen, scale_.type())));
    const Graph graph = builder.take();
    const Node& node = graph.nodes()[0];
    const auto kernel = cpu::make_quantized_linear(KernelRequest(graph, node, 1), unit);
    const TensorType& type = graph.type(node.outputs[0]);
    const RunResult run = run_kernel_in_all_ways(*kernel, {&x_, &weight_, &scale_}, {type});
    if (!run.problem.empty()) return kernel->description() + ": " + run.problem;
    const std::vector<float> expected = expect();
    for (size_t i = 0; i < expected.size(); ++i) {
      float got = 0;
      std::memcpy(&got, run.outputs[0].data() + i * sizeof(float), sizeof got);
      if (got != expected[i] && !(std::isnan(got) && std::isnan(expected[i])))
        return fmt::format("{}: element {} is {}, {} was expected, exactly", kernel->description(),
                           i, got, expected[i]);
    }
    return "";
  }

 private:
  std::vector<float> expect() const {
    const int64_t depth = x_.shape()[1], columns = weight_.shape()[0];
    std::vector<float> y;
    for (int64_t row = 0; row < x_.shape()[0]; ++row) {
      std::vector<float> x;
      for (int64_t i = 0; i < depth; ++i) x.push_back(static_cast<float>(x_.at(row * depth + i)));
      std::vector<int8_t> q(x.size());
      float row_scale = 0;
      if (!quantize_rows(x.data(), 1, depth, q.data(), &row_scale))
        row_scale = std::numeric_limits<float>::quiet_NaN();
      for (int64_t column = 0; column < columns; ++column) {
        int32_t sum = 0;
        for (int64_t i = 0; i < depth; ++i)
          sum += static_cast<int32_t>(q[static_cast<size_t>(i)]) *
                 static_cast<int32_t>(weight_.at(column * depth + i));
        const float scaled = static_cast<float>(sum) * static_cast<float>(scale_.at(column));
        y.push_back(scaled * row_scale);
      }
    }
    return y;
  }

  Literal x_, weight_, scale_;
};

class Int8Units : public ::testing::TestWithParam<const Int8Unit*> {};

// One beside vectors, tiles, items and the padding of rows.
TEST_P(Int8Units, MakeTheBitsOfPlainArithmetic) {
  for (const int64_t rows : {1, 2, 3, 4, 5, 8, 65})
    for (const int64_t columns : {1, 3, 4, 7, 8, 9, 31})
      for (const int64_t depth : {1, 7, 8, 15, 16, 17, 31, 33, 63, 64, 65, 200})
        EXPECT_EQ(Call(rows, columns, depth).check(*GetParam()), "")
            << rows << " " << columns << " " << depth;
}

TEST_P(Int8Units, MakeLargeProductsInManyItems) {
  EXPECT_EQ(Call(1, 1000, 384).check(*GetParam()), "");
  EXPECT_EQ(Call(130, 300, 129).check(*GetParam()), "");
  EXPECT_EQ(Call(1, 2, kMostInt8Depth).check(*GetParam()), "");
}

// Instructions that add pairs of products in 16 bits would saturate here.
TEST_P(Int8Units, NothingSaturates) {
  for (const int64_t rows : {1, 4})
    for (const double x : {1.0, -1.0})
      for (const int64_t weight : {127, -127}) {
        Call call(rows, 5, 1000);
        for (double& each : call.x().reals()) each = x;
        for (int64_t& each : call.weight().integers()) each = weight;
        EXPECT_EQ(call.check(*GetParam()), "") << x << " times " << weight;
      }
}

TEST_P(Int8Units, KnowRowsOfZerosOfTinyNumbersAndOfNone) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double special : {0.0, -0.0, 1e-40, 1e-37, 3e38, infinity, -infinity,
                               std::numeric_limits<double>::quiet_NaN()})
    for (const size_t place : {size_t{0}, size_t{36}}) {
      Call alone(3, 5, 37), among(3, 5, 37);
      for (size_t i = 0; i < 37; ++i) alone.x().reals()[37 + i] = 0;
      alone.x().reals()[37 + place] = special;
      among.x().reals()[37 + place] = special;
      alone.x().round();
      among.x().round();
      EXPECT_EQ(alone.check(*GetParam()), "") << special;
      EXPECT_EQ(among.check(*GetParam()), "") << special;
    }
}

TEST_P(Int8Units, RoundHalvesToEven) {
  Call call(1, 5, 8);
  call.x().reals() = {127, 0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 126.5};
  EXPECT_EQ(call.check(*GetParam()), "");
}

INSTANTIATE_TEST_SUITE_P(OfThisProcessor, Int8Units, ::testing::ValuesIn(cpu::int8_units()),
                         [](const auto& unit) { return std::string(unit.param->name); });

}  // namespace
}  // namespace fullbore
