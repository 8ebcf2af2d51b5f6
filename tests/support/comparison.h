#pragma once
#include <string>
#include <vector>

#include "fullbore/ir/graph.h"
#include "fullbore/ir/literal.h"

namespace fullbore::testing_support {

/// What the oracle says of one result, and how far from it a kernel may be.
struct Expected {
  Literal value;
  /// Per element: error of the arithmetic before the result is rounded to its dtype.
  std::vector<double> slack;
};

/// The reference of one node on given operands. The slack is, in the precision that kernels compute
/// in (f32 for bf16 and f16, else the dtype): scalar_op_ulps * eps * |y| of an elementwise op, and
/// eps * magnitude of one that accumulates; plus as many of the smallest denormals.
std::vector<Expected> expect(const Graph& graph, const Node& node,
                             const std::vector<const Literal*>& operands);

/// "" or "output 0 element 7: expected 1.5, got 1.25, bound [1.4, 1.6]". An element is right if it
/// lies between the roundings of y - slack and y + slack; NaN must be NaN, and integers exact. Processors that
/// round to bf16 by themselves make zeros of denormals.
std::string compare(const Expected& expected, const Literal& got, size_t output);

}  // namespace fullbore::testing_support
