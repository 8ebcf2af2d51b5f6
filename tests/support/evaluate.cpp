#include "tests/support/evaluate.h"

#include <fmt/format.h>

#include "fullbore/base/check.h"
#include "fullbore/base/error.h"
#include "fullbore/device/interpret.h"
#include "fullbore/ir/verify.h"

namespace fullbore {

std::vector<Literal> evaluate_all(const std::vector<Literal>& inputs, const BuildMany& build) {
  GraphBuilder builder;
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < inputs.size(); ++i)
    tensors.push_back(builder.input(fmt::format("x{}", i), Role::batch, inputs[i].type()));
  const std::vector<Tensor> results = build(builder, tensors);
  for (size_t i = 0; i < results.size(); ++i) builder.output(fmt::format("y{}", i), results[i]);
  const std::string problem = verify(builder.graph());
  FB_CHECK(problem.empty(), "{}", problem);
  return interpret(builder.graph(), inputs);
}

Literal evaluate(const std::vector<Literal>& inputs, const BuildOne& build) {
  return evaluate_all(inputs, [&](GraphBuilder& builder, const std::vector<Tensor>& tensors) {
    return std::vector<Tensor>{build(builder, tensors)};
  })[0];
}

Literal reals(Shape shape, std::vector<double> values) {
  return Literal::of({DType::f64, std::move(shape)}, std::move(values));
}

Literal integers(DType dtype, Shape shape, std::vector<double> values) {
  return Literal::of({dtype, std::move(shape)}, std::move(values));
}

std::vector<double> elements(const Literal& literal) {
  std::vector<double> values;
  for (int64_t i = 0; i < literal.elements(); ++i) values.push_back(literal.at(i));
  return values;
}

std::string usage_error(const std::function<void()>& action) {
  try {
    action();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

}  // namespace fullbore
