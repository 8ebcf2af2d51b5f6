#pragma once
#include <vector>

#include "fullbore/autodiff/backward.h"
#include "fullbore/device/interpret.h"
#include "tests/support/evaluate.h"

namespace fullbore {

/// Cotangents of all floating `inputs` of the one result that `build` writes, by backward(), for the
/// cotangent `dy` of that result.
inline std::vector<Literal> differentiate(const std::vector<Literal>& inputs, const Literal& dy,
                                          const BuildOne& build) {
  std::vector<Literal> all = inputs;
  all.push_back(dy);
  return evaluate_all(all, [&](GraphBuilder& builder, const std::vector<Tensor>& x) {
    const std::vector<Tensor> operands(x.begin(), x.end() - 1);
    const Tensor y = build(builder, operands);
    std::vector<Tensor> wanted;
    for (const Tensor& operand : operands)
      if (is_floating(operand.dtype())) wanted.push_back(operand);
    return backward(builder, std::vector{y}, std::vector{x.back()}, wanted);
  });
}

}  // namespace fullbore
