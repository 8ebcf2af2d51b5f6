#include <cmath>

#include "fullbore/ops/rules.h"

/// Signs of floats and integers, no attributes. Integers wrap.
namespace fullbore {
namespace {

const TensorType kScalar{DType::f32, {}};
const double kInfinity = HUGE_VAL;

using Tensors = std::vector<Tensor>;

std::vector<Sample> unary_samples(SampleInput fill, Sample extremes) {
  Sample integers{.why = "integers",
                  .inputs = {SampleInput::integers({DType::i32, {3, 7}}, -100, 100)},
                  .attributes = {}};
  Sample lowest{.why = "the integer without a negative",
                .inputs = {SampleInput::given({DType::i32, {2}}, {-2147483648.0, 2147483647.0})},
                .attributes = {}};
  return with(elementwise_samples({std::move(fill)}), {extremes, integers, lowest});
}

// Differentiable on both sides of 0 but not at it.
std::vector<Sample> away_from_zero_samples() {
  return unary_samples(SampleInput::uniform(kScalar, 0.1, 2),
                       {.why = "below 0",
                        .inputs = {SampleInput::uniform({DType::f32, {3, 5}}, -2, -0.1)},
                        .attributes = {}});
}

const OpRegistrar neg_op(OpDef{
    .name = "neg",
    .summary = "-x",
    .tags = Tag::elementwise,
    .scalar = ScalarOp::neg,
    .infer = infer_numeric_unary,
    .vjp = [](const VjpCall& call) -> Tensors { return {-call.cotangents[0]}; },
    .samples =
        [] {
          return unary_samples(SampleInput::normal(kScalar),
                               given_sample("zeros, denormals, infinities",
                                            {{0, -0.0, 1e-40, 1000, kInfinity, -kInfinity}}));
        },
    .error_samples = numeric_unary_errors,
});

const OpRegistrar abs_op(OpDef{
    .name = "abs",
    .summary = "|x|; derivative 0 at 0",
    .tags = Tag::elementwise,
    .scalar = ScalarOp::abs,
    .infer = infer_numeric_unary,
    .vjp = [](const VjpCall& call) -> Tensors {
      return {call.cotangents[0] * sign(call.inputs[0])};
    },
    .samples =
        [] {
          return with(away_from_zero_samples(),
                      {given_sample("zeros, denormals, infinities",
                                    {{0, -0.0, -1e-40, -1000, kInfinity, -kInfinity}})});
        },
    .error_samples = numeric_unary_errors,
});

const OpRegistrar sign_op(OpDef{
    .name = "sign",
    .summary = "-1, 0 or 1",
    .tags = Tag::elementwise | Tag::zero_gradient,
    .scalar = ScalarOp::sign,
    .infer = infer_numeric_unary,
    .samples =
        [] {
          return with(away_from_zero_samples(),
                      {given_sample("zeros, denormals, infinities",
                                    {{0, -0.0, 1e-40, -1e-40, kInfinity, -kInfinity}})});
        },
    .error_samples = numeric_unary_errors,
});

}  // namespace

Tensor neg(Tensor x, SourceLoc loc) { return apply("neg", {x}, {}, loc); }
Tensor abs(Tensor x, SourceLoc loc) { return apply("abs", {x}, {}, loc); }
Tensor sign(Tensor x, SourceLoc loc) { return apply("sign", {x}, {}, loc); }

}  // namespace fullbore
