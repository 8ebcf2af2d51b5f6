#pragma once
#include <functional>
#include <string>
#include <vector>

#include "fullbore/ir/literal.h"
#include "fullbore/ir/tensor.h"

namespace fullbore {

using BuildMany = std::function<std::vector<Tensor>(GraphBuilder&, const std::vector<Tensor>&)>;
using BuildOne = std::function<Tensor(GraphBuilder&, const std::vector<Tensor>&)>;

/// What the interpreter makes of the graph that `build` writes on these inputs.
std::vector<Literal> evaluate_all(const std::vector<Literal>& inputs, const BuildMany& build);
Literal evaluate(const std::vector<Literal>& inputs, const BuildOne& build);

/// Literals, element by element: f64, so that expectations are exact.
Literal reals(Shape shape, std::vector<double> values);
Literal integers(DType dtype, Shape shape, std::vector<double> values);
/// Every element as a double.
std::vector<double> elements(const Literal& literal);

/// The message of the UsageError that `action` throws, or "" if it throws none.
std::string usage_error(const std::function<void()>& action);

}  // namespace fullbore
