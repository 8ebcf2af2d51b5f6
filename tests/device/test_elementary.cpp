// Functions that are made of several scalar ops, on the processor, against the C library one precision higher: the
// largest error in units of the last place of the exact result. The oracle checks their nodes one by one alone.
#include "fullbore/base/aligned_copy.h"
#include "fullbore/ops/elementary.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "fullbore/base/philox.h"
#include "fullbore/runtime/program.h"
#include "fullbore/trace/trace.h"
#include "tests/support/device.h"

namespace fullbore {
namespace {

struct Row {
  const char* name;
  Tensor (*function)(Tensor, SourceLoc);
  double (*exact)(double);
  double ulps;  ///< measured maximum in f32, rounded up
  double low, high;
};

const Row kRows[] = {
    {"tan", tan, std::tan, 4, -10, 10},
    {"asin", asin, std::asin, 4, -1, 1},
    {"acos", acos, std::acos, 4, -1, 1},
    {"atan", atan, std::atan, 4, -20, 20},
    {"sinh", sinh, std::sinh, 5, -89, 89},
    {"sinh near 0", sinh, std::sinh, 5, -1e-3, 1e-3},
    {"cosh", cosh, std::cosh, 5, -89, 89},
    {"asinh", asinh, std::asinh, 5, -3, 3},
    {"asinh near 0", asinh, std::asinh, 5, -1e-3, 1e-3},
    {"asinh of large ones", asinh, std::asinh, 5, -1e9, 1e9},
    {"acosh", acosh, std::acosh, 5, 1, 3},
    {"acosh of large ones", acosh, std::acosh, 5, 1, 1e9},
    {"atanh", atanh, std::atanh, 5, -1, 1},
    {"atanh near 0", atanh, std::atanh, 5, -1e-3, 1e-3},
    {"log2", log2, std::log2, 4, 0, 4},
    {"log10", log10, std::log10, 4, 0, 4},
    {"exp2", exp2, std::exp2, 4, -120, 120},
};
constexpr int64_t kPoints = 4096;

TEST(Elementary, FunctionsAreRightToAFewUnitsInTheLastPlace) {
  Trace trace("t", false);
  std::vector<std::vector<float>> points;
  PhiloxStream draws(27);
  for (const Row& row : kRows) {
    const Tensor x = trace.batch(row.name, {DType::f32, {kPoints}});
    trace.result(std::string("y.") + row.name, row.function(x, SourceLoc::here()));
    std::vector<float>& each = points.emplace_back(kPoints);
    for (float& point : each) point = static_cast<float>(draws.uniform(row.low, row.high));
  }
  State state({}, testing_support::cpu_device(2));
  Program program = Program::compile(trace.finish(), state);
  std::vector<TensorMemory> memory;
  std::vector<const void*> batch;
  for (const std::vector<float>& each : points)
    batch.push_back(memory.emplace_back(aligned_copy(each)).get());
  program.run(batch);
  for (size_t r = 0; r < std::size(kRows); ++r) {
    const Row& row = kRows[r];
    const std::vector<float> y =
        program.read_result<float>(program.output(std::string("y.") + row.name));
    double largest = 0;
    for (size_t i = 0; i < y.size(); ++i) {
      const double exact = row.exact(static_cast<double>(points[r][i]));
      if (static_cast<float>(exact) == y[i]) continue;
      const double unit = std::ldexp(1, std::max(-126, std::ilogb(exact)) - 23);
      largest = std::max(largest, std::abs(static_cast<double>(y[i]) - exact) / unit);
    }
    EXPECT_LE(largest, row.ulps) << row.name;
    RecordProperty(row.name, std::to_string(largest));
  }
}

TEST(Elementary, Atan2KnowsQuadrantsToAFewUnits) {
  Trace trace("t", false);
  const TensorType type{DType::f32, {kPoints}};
  const Tensor first = trace.batch("y", type), second = trace.batch("x", type);
  trace.result("angle", atan2(first, second));
  std::vector<float> y(kPoints), x(kPoints);
  PhiloxStream draws(28);
  for (size_t i = 0; i < y.size(); ++i) {
    y[i] = static_cast<float>(draws.normal());
    x[i] = static_cast<float>(draws.normal());
  }
  State state({}, testing_support::cpu_device(2));
  Program program = Program::compile(trace.finish(), state);
  const TensorMemory ordinates = aligned_copy(y), abscissas = aligned_copy(x);
  const std::vector<const void*> batch = {ordinates.get(), abscissas.get()};
  program.run(batch);
  const std::vector<float> angle = program.read_result<float>(program.output("angle"));
  for (size_t i = 0; i < y.size(); ++i) {
    const double exact = std::atan2(static_cast<double>(y[i]), static_cast<double>(x[i]));
    EXPECT_NEAR(angle[i], exact, 5 * 0x1p-23 * std::abs(exact)) << y[i] << " " << x[i];
  }
}

}  // namespace
}  // namespace fullbore
