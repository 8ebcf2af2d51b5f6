#include "comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "fullbore/base/processor.h"
#include "fullbore/device/interpret.h"
#include "fullbore/ir/op_def.h"

namespace fullbore::testing_support {
namespace {

DType compute_dtype(DType dtype) { return is_low_precision(dtype) ? DType::f32 : dtype; }

double smallest_denormal(DType dtype) {
  return dtype_smallest_normal(dtype) * dtype_epsilon(dtype);
}

// The last operation's own rounding counts among its ulps; where that is to the result's dtype, it is
// compare() that allows for it.
double ulps_before_rounding(const OpDef& op, DType dtype) {
  if (!op.is(Tag::elementwise)) return 0;
  const double ulps = scalar_op_ulps(op.scalar);
  return is_low_precision(dtype) ? ulps : std::max(0.0, ulps - 0.5);
}

bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

}  // namespace

std::vector<Expected> expect(const Graph& graph, const Node& node,
                             const std::vector<const Literal*>& operands) {
  std::vector<TensorType> types;
  for (Value output : node.outputs) types.push_back(graph.type(output));
  std::vector<std::vector<double>> magnitudes;
  std::vector<Literal> values = interpret_node(node, types, operands, &magnitudes);
  std::vector<Expected> result;
  for (size_t o = 0; o < values.size(); ++o) {
    const DType dtype = values[o].dtype();
    Expected expected{std::move(values[o]), {}};
    if (is_floating(dtype)) {
      const DType computed = compute_dtype(dtype);
      const double eps = dtype_epsilon(computed);
      const double ulps = ulps_before_rounding(*node.op, dtype);
      for (int64_t i = 0; i < expected.value.elements(); ++i) {
        double slack = ulps * eps * std::abs(expected.value.at(i));
        if (o < magnitudes.size() && !magnitudes[o].empty())
          slack += eps * magnitudes[o][static_cast<size_t>(i)];
        if (std::isfinite(slack) && slack > 0)
          slack += std::max(1.0, ulps) * smallest_denormal(computed);
        expected.slack.push_back(slack);
      }
    }
    result.push_back(std::move(expected));
  }
  return result;
}

std::string compare(const Expected& expected, const Literal& got, size_t output) {
  const DType dtype = got.dtype();
  for (int64_t i = 0; i < got.elements(); ++i) {
    if (!got.floating()) {
      const int64_t want = expected.value.integers()[static_cast<size_t>(i)];
      const int64_t have = got.integers()[static_cast<size_t>(i)];
      if (want != have)
        return fmt::format("output {} element {}: expected {}, got {}, exactly", output, i, want,
                           have);
      continue;
    }
    const double want = expected.value.at(i);
    const double have = got.at(i);
    const double slack = expected.slack[static_cast<size_t>(i)];
    if (same(round_to_dtype(want, dtype), have)) continue;
    if (dtype == DType::bf16 && have == 0 && std::abs(want) < dtype_smallest_normal(dtype) &&
        this_processor().avx512_bf16)
      continue;
    const double low = round_to_dtype(want - slack, dtype);
    const double high = round_to_dtype(want + slack, dtype);
    if (low <= have && have <= high) continue;
    // Sums so large that they overflow on the way say nothing of the result.
    const DType computed = compute_dtype(dtype);
    if (std::isfinite(want) && !std::isfinite(have) &&
        slack > dtype_epsilon(computed) * dtype_largest(computed))
      continue;
    return fmt::format(
        "output {} element {}: expected {:.17g}, got {:.17g}, bound [{:.17g}, {:.17g}]", output, i,
        want, have, low, high);
  }
  return "";
}

}  // namespace fullbore::testing_support
