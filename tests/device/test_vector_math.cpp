// The elementary functions that are inlined into kernels, against the C library one precision
// higher: the largest error over dense samples, in units of the last place of the exact result, and
// special values. The bounds here are what scalar_op_ulps() promises or better.
#include <gtest/gtest.h>

#include <algorithm>
#include <cfenv>
#include <cmath>
#include <limits>
#include <ostream>

#include "fullbore/base/hash.h"
#include "fullbore/base/philox.h"
#include "fullbore/device/cpu/codegen/code_generator.h"
#include "fullbore/device/cpu/codegen/code_store.h"
#include "fullbore/ir/op_def.h"
#include "fullbore/ir/scalar.h"
#include "jit_harness.h"

namespace fullbore {
namespace {

using Function = long double (*)(long double, long double);

struct Row {
  const char* op;
  Function exact;
  double f32_ulps;  ///< measured maximum, rounded up
  double f64_ulps;
  double low;  ///< a dense sweep of this range, besides all magnitudes
  double high;
  double largest_f32 = 3.4e38;  ///< |x| of the sweep over magnitudes
  double largest_f64 = 1.7e308;
  double hardest_f32 =
      1;  ///< of all f32 arguments the one with the largest error, where it is known

  friend std::ostream& operator<<(std::ostream& out, const Row& row) { return out << row.op; }
};

const Row kRows[] = {
    {"exp", [](long double x, long double) { return std::exp(x); }, 1.03, 1, -20, 20, 3.4e38,
     1.7e308, 59.3182755},
    {"expm1", [](long double x, long double) { return std::expm1(x); }, 2, 2, -3, 3},
    {"log", [](long double x, long double) { return std::log(x); }, 1, 1, 0, 4},
    {"log1p", [](long double x, long double) { return std::log1p(x); }, 2, 2, -1, 3},
    {"tanh", [](long double x, long double) { return std::tanh(x); }, 3, 3, -4, 4},
    {"erf", [](long double x, long double) { return std::erf(x); }, 2, 2, -4, 4},
    {"sin", [](long double x, long double) { return std::sin(x); }, 1.5, 1.5, -200, 200, 1e6, 1e8},
    {"cos", [](long double x, long double) { return std::cos(x); }, 1.5, 1.5, -200, 200, 1e6, 1e8},
    {"sqrt", [](long double x, long double) { return std::sqrt(x); }, 0.5, 0.5, 0, 4},
    {"rsqrt", [](long double x, long double) { return 1 / std::sqrt(x); }, 1.5, 1.5, 0, 4},
    {"pow", [](long double x, long double y) { return std::pow(x, y); }, 1, 1.5, -4, 4},
};

// Distance between neighbouring values of the dtype around y.
double spacing(DType dtype, double y) {
  const double normal = dtype_smallest_normal(dtype);
  const double magnitude = std::max(std::abs(y), normal);
  return std::ldexp(dtype_epsilon(dtype), std::ilogb(magnitude));
}

struct Operands {
  std::vector<double> x;
  std::vector<double> y;
};

// All magnitudes of both signs, evenly in the exponent, then the row's own range.
Operands sweep(const Row& row, DType dtype, int64_t count) {
  PhiloxStream draws(hash_text(row.op), static_cast<uint64_t>(dtype));
  const double largest = dtype == DType::f32 ? row.largest_f32 : row.largest_f64;
  const double smallest = dtype == DType::f32 ? 1e-45 : 5e-324;
  Operands operands;
  const auto add = [&](double x, double y) {
    operands.x.push_back(round_to_dtype(x, dtype));
    operands.y.push_back(round_to_dtype(y, dtype));
  };
  add(row.hardest_f32, 1);
  for (int64_t i = 0; i < count; ++i) {
    const double magnitude = std::exp(draws.uniform(std::log(smallest), std::log(largest)));
    const double sign = draws.below(2) == 0 ? 1 : -1;
    // Exponents of pow that keep the result within range.
    const double y = draws.uniform(-1, 1) * (dtype == DType::f32 ? 88 : 700) /
                     std::max(1e-6, std::abs(std::log(magnitude)));
    add(sign * magnitude, y);
    add(draws.uniform(row.low, row.high), draws.uniform(-30, 30));
  }
  return operands;
}

// `store`: of code for another target; null: the process's.
Literal run(const char* op, DType dtype, const Operands& operands,
            jit::CodeStore* store = nullptr) {
  const TensorType type{dtype, {static_cast<int64_t>(operands.x.size())}};
  const OpDef& definition = get_op(op);
  Graph graph;
  std::vector<Value> inputs{graph.add_input("x", Role::batch, type)};
  std::vector<Literal> values{Literal::of(type, operands.x)};
  if (scalar_op_arity(definition.scalar) == 2) {
    inputs.push_back(graph.add_input("y", Role::batch, type));
    values.push_back(Literal::of(type, operands.y));
  }
  const Node node = graph.add_node(definition, inputs, {});
  JitCompiler compiler(store);
  const auto kernel = compiler.add(graph, node, 1);
  compiler.finish();
  return run_kernel(*kernel, values, {graph.type(node.outputs[0])})[0];
}

struct Worst {
  double ulps = 0;
  double x = 0;
  double y = 0;
};

Worst measure(const Row& row, DType dtype, int64_t count, jit::CodeStore* store = nullptr) {
  const Operands operands = sweep(row, dtype, count);
  const Literal found = run(row.op, dtype, operands, store);
  Worst worst;
  for (size_t i = 0; i < operands.x.size(); ++i) {
    const long double exact = row.exact(operands.x[i], operands.y[i]);
    const double rounded = round_to_dtype(static_cast<double>(exact), dtype);
    const double got = found.reals()[i];
    if (std::isnan(rounded) && std::isnan(got)) continue;
    if (rounded == got) continue;
    double ulps = std::numeric_limits<double>::infinity();
    if (std::isfinite(got) && std::isfinite(static_cast<double>(exact)))
      ulps = static_cast<double>(std::abs(exact - static_cast<long double>(got))) /
             spacing(dtype, static_cast<double>(exact));
    if (ulps > worst.ulps) worst = {ulps, operands.x[i], operands.y[i]};
  }
  return worst;
}

class VectorMath : public ::testing::TestWithParam<Row> {};

TEST_P(VectorMath, F32StaysWithinItsBound) {
  const Row& row = GetParam();
  const Worst worst = measure(row, DType::f32, 600'000);
  RecordProperty("ulps", std::to_string(worst.ulps));
  EXPECT_LE(worst.ulps, row.f32_ulps) << row.op << "(" << worst.x << ", " << worst.y << ")";
  EXPECT_LE(row.f32_ulps, std::max(0.5, scalar_op_ulps(get_op(row.op).scalar)));
}

TEST_P(VectorMath, F64StaysWithinItsBound) {
  const Row& row = GetParam();
  const Worst worst = measure(row, DType::f64, 300'000);
  RecordProperty("ulps", std::to_string(worst.ulps));
  EXPECT_LE(worst.ulps, row.f64_ulps) << row.op << "(" << worst.x << ", " << worst.y << ")";
  EXPECT_LE(row.f64_ulps, std::max(0.5, scalar_op_ulps(get_op(row.op).scalar)));
}

// What has a shorter form for vectors that fill AVX-512's registers has another one elsewhere.
TEST_P(VectorMath, F32OfNarrowerRegistersStaysWithinItsBound) {
  jit::CodegenTarget target = jit::host_target();
  target.vector_bytes = std::min(target.vector_bytes, 32);
  target.avx512 = target.rounds_to_bf16 = false;
  jit::CodeStore store(target, "");
  const Row& row = GetParam();
  const Worst worst = measure(row, DType::f32, 100'000, &store);
  EXPECT_LE(worst.ulps, row.f32_ulps) << row.op << "(" << worst.x << ", " << worst.y << ")";
}

INSTANTIATE_TEST_SUITE_P(Functions, VectorMath, ::testing::ValuesIn(kRows),
                         [](const auto& row) { return std::string(row.param.op); });

// Everything C's Annex F has to say, and what lies beyond the reduction of sin and cos.
class VectorMathSpecials : public ::testing::TestWithParam<DType> {};

TEST_P(VectorMathSpecials, AgreeWithTheCLibrary) {
  const DType dtype = GetParam();
  const double infinity = std::numeric_limits<double>::infinity();
  const double tiny = dtype_smallest_normal(dtype);
  const double largest = dtype_largest(dtype);
  const std::vector<double> values = {
      0.0,     -0.0,     1,         -1,        2,
      -2,      0.5,      -0.5,      3,         -3,
      1e-3,    tiny,     -tiny,     tiny / 4,  -tiny / 4,
      largest, -largest, infinity,  -infinity, std::numeric_limits<double>::quiet_NaN(),
      88.72,   -87.3,    -103.9,    709.7,     -745.1,
      1e10,    -1e10,    4194304.5, 1e22,      4e15,
      1.5,     -1.5};
  for (const Row& row : kRows) {
    Operands operands;
    for (double x : values)
      for (double y : values) {
        operands.x.push_back(round_to_dtype(x, dtype));
        operands.y.push_back(round_to_dtype(y, dtype));
      }
    const Literal found = run(row.op, dtype, operands);
    for (size_t i = 0; i < operands.x.size(); ++i) {
      const double exact = static_cast<double>(row.exact(operands.x[i], operands.y[i]));
      const double rounded = round_to_dtype(exact, dtype);
      const double got = found.reals()[i];
      const std::string call = std::string(row.op) + "(" + std::to_string(operands.x[i]) + ", " +
                               std::to_string(operands.y[i]) + ")";
      if (std::isnan(rounded))
        EXPECT_TRUE(std::isnan(got)) << call << " = " << got;
      else if (std::isinf(rounded) || std::isinf(got))
        EXPECT_EQ(got, rounded) << call;
      else
        EXPECT_LE(std::abs(got - rounded), 4 * spacing(dtype, exact)) << call << " = " << got;
    }
  }
}

// A product that is too small for its exponent sets the flag, and takes many processors a hundred times as long.
TEST_P(VectorMathSpecials, ExponentialsThatAreZeroUnderflowNowhere) {
  const DType dtype = GetParam();
  const double least = dtype == DType::f32 ? -104.01 : -746.01;
  const double infinity = std::numeric_limits<double>::infinity();
  const TensorType type{dtype, {35}};
  Graph graph;
  const Value x = graph.add_input("x", Role::batch, type);
  const Node node = graph.add_node(get_op("exp"), {x}, {});
  JitCompiler compiler;
  const auto kernel = compiler.add(graph, node, 1);
  compiler.finish();
  std::vector<double> values(35, least);
  for (size_t i = 0; i < values.size(); i += 3) values[i] = i % 2 == 0 ? -infinity : 100 * least;
  const std::vector<Literal> operands{Literal::of(type, values)};
  std::feclearexcept(FE_ALL_EXCEPT);
  const Literal found = run_kernel(*kernel, operands, {type})[0];
  EXPECT_EQ(std::fetestexcept(FE_UNDERFLOW), 0);
  for (const double got : found.reals()) EXPECT_TRUE(got == 0 && !std::signbit(got)) << got;
}

INSTANTIATE_TEST_SUITE_P(DTypes, VectorMathSpecials, ::testing::Values(DType::f32, DType::f64),
                         [](const auto& dtype) { return std::string(dtype_name(dtype.param)); });

}  // namespace
}  // namespace fullbore
