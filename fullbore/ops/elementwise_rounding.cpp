#include <cmath>

#include "fullbore/ops/rules.h"

/// To whole numbers, still floating; no attributes, no gradients.
namespace fullbore {
namespace {

const TensorType kScalar{DType::f32, {}};
const double kInfinity = HUGE_VAL;

std::vector<Sample> rounding_samples() {
  return with(elementwise_samples({SampleInput::normal(kScalar).constant()}),
              {given_sample("halves, whole numbers, large values, -0, infinities",
                            {{0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 3, -0.0, 0.49999997, 8388609, -1000,
                              1e30, kInfinity, -kInfinity, 1e-40, -1e-40}})});
}

const OpRegistrar floor_op(OpDef{
    .name = "floor",
    .summary = "largest whole number that is not above x",
    .tags = Tag::elementwise | Tag::zero_gradient,
    .scalar = ScalarOp::floor,
    .infer = infer_floating_unary,
    .samples = rounding_samples,
    .error_samples = floating_unary_errors,
});

const OpRegistrar ceil_op(OpDef{
    .name = "ceil",
    .summary = "smallest whole number that is not below x",
    .tags = Tag::elementwise | Tag::zero_gradient,
    .scalar = ScalarOp::ceil,
    .infer = infer_floating_unary,
    .samples = rounding_samples,
    .error_samples = floating_unary_errors,
});

const OpRegistrar round_op(OpDef{
    .name = "round",
    .summary = "nearest whole number, half to even",
    .tags = Tag::elementwise | Tag::zero_gradient,
    .scalar = ScalarOp::round,
    .infer = infer_floating_unary,
    .samples = rounding_samples,
    .error_samples = floating_unary_errors,
});

}  // namespace

Tensor floor(Tensor x, SourceLoc loc) { return apply("floor", {x}, {}, loc); }
Tensor ceil(Tensor x, SourceLoc loc) { return apply("ceil", {x}, {}, loc); }
Tensor round(Tensor x, SourceLoc loc) { return apply("round", {x}, {}, loc); }

}  // namespace fullbore
