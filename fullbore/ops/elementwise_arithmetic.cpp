#include <cmath>

#include "fullbore/ops/rules.h"

/// Arithmetic of two floats or integers, no attributes. Integers wrap.
namespace fullbore {
namespace {

const TensorType kScalar{DType::f32, {}};
const double kInfinity = HUGE_VAL;

using Tensors = std::vector<Tensor>;

// Halves on a tie, so that the derivative of maximum(x, x) is 1.
Tensor share(const Tensor& dy, const Tensor& wins, const Tensor& ties) {
  return select(wins, dy, select(ties, dy * 0.5, 0.0));
}

Tensors extremum_vjp(const VjpCall& call, const Tensor& a_wins, const Tensor& b_wins) {
  const Tensor &dy = call.cotangents[0], &a = call.inputs[0], &b = call.inputs[1];
  const Tensor ties = equal(a, b);
  return {call.wanted[0] ? share(dy, a_wins, ties) : Tensor{},
          call.wanted[1] ? share(dy, b_wins, ties) : Tensor{}};
}

Tensors maximum_vjp(const VjpCall& call) {
  const Tensor &a = call.inputs[0], &b = call.inputs[1];
  return extremum_vjp(call, greater(a, b), less(a, b));
}

Tensors minimum_vjp(const VjpCall& call) {
  const Tensor &a = call.inputs[0], &b = call.inputs[1];
  return extremum_vjp(call, less(a, b), greater(a, b));
}

// y = a / b: da = dy / b, db = -dy y / b.
Tensors div_vjp(const VjpCall& call) {
  const Tensor &b = call.inputs[1], &y = call.outputs[0];
  const Tensor da = call.cotangents[0] / b;
  return {call.wanted[0] ? da : Tensor{}, call.wanted[1] ? -(da * y) : Tensor{}};
}

Tensors remainder_vjp(const VjpCall& call) {
  const Tensor &dy = call.cotangents[0], &a = call.inputs[0], &b = call.inputs[1];
  return {call.wanted[0] ? dy : Tensor{}, call.wanted[1] ? -(dy * floor(a / b)) : Tensor{}};
}

Tensors mul_vjp(const VjpCall& call) {
  const Tensor &dy = call.cotangents[0], &a = call.inputs[0], &b = call.inputs[1];
  return {call.wanted[0] ? dy * b : Tensor{}, call.wanted[1] ? dy * a : Tensor{}};
}

std::vector<Sample> binary_samples(SampleInput a, SampleInput b, std::vector<Sample> more) {
  const auto integers = [](std::string why, DType dtype, double low, double high) {
    const TensorType type{dtype, {3, 7}};
    return Sample{
        .why = std::move(why),
        .inputs = {SampleInput::integers(type, low, high), SampleInput::integers(type, low, high)},
        .attributes = {}};
  };
  const TensorType pair{DType::i32, {4}};
  Sample wraps{.why = "results that wrap; the lowest integer by -1",
               .inputs = {SampleInput::given(pair, {2147483647.0, -2147483648.0, -2147483648.0, 7}),
                          SampleInput::given(pair, {2147483647.0, -1, 2147483647.0, 0})},
               .attributes = {}};
  return with(
      with(elementwise_samples({std::move(a), std::move(b)}), std::move(more)),
      {integers("integers, zero divisors too", DType::i32, -4, 4),
       integers("64 bits", DType::i64, -1e12, 1e12), integers("bytes", DType::u8, 0, 256), wraps});
}

Sample binary_extremes() {
  return given_sample("zeros, denormals, large values and infinities",
                      {{0, 0, -0.0, 1e-40, 3e38, 1, -1, kInfinity, 1000, -1000, 65504, 5},
                       {1, -2, 3, 2, 3e38, 0, 0, 2, -1000, 1e-3, 2, kInfinity}});
}

const OpRegistrar add_op(OpDef{
    .name = "add",
    .summary = "a + b",
    .tags = Tag::elementwise | Tag::commutative,
    .scalar = ScalarOp::add,
    .infer = infer_numeric_binary,
    .vjp = [](const VjpCall& call) -> Tensors {
      return {call.cotangents[0], call.cotangents[0]};
    },
    .samples =
        [] {
          return binary_samples(SampleInput::normal(kScalar), SampleInput::normal(kScalar),
                                {binary_extremes()});
        },
    .error_samples = numeric_binary_errors,
});

const OpRegistrar sub_op(OpDef{
    .name = "sub",
    .summary = "a - b",
    .tags = Tag::elementwise,
    .scalar = ScalarOp::sub,
    .infer = infer_numeric_binary,
    .vjp = [](const VjpCall& call) -> Tensors {
      return {call.cotangents[0], call.wanted[1] ? -call.cotangents[0] : Tensor{}};
    },
    .samples =
        [] {
          return binary_samples(SampleInput::normal(kScalar), SampleInput::normal(kScalar),
                                {binary_extremes()});
        },
    .error_samples = numeric_binary_errors,
});

const OpRegistrar mul_op(OpDef{
    .name = "mul",
    .summary = "a * b",
    .tags = Tag::elementwise | Tag::commutative,
    .scalar = ScalarOp::mul,
    .infer = infer_numeric_binary,
    .vjp = mul_vjp,
    .samples =
        [] {
          return binary_samples(SampleInput::normal(kScalar), SampleInput::normal(kScalar),
                                {binary_extremes()});
        },
    .error_samples = numeric_binary_errors,
});

const OpRegistrar div_op(OpDef{
    .name = "div",
    .summary = "a / b; integers truncate, x / 0 = 0",
    .tags = Tag::elementwise,
    .scalar = ScalarOp::div,
    .infer = infer_numeric_binary,
    .vjp = div_vjp,
    .samples =
        [] {
          return binary_samples(SampleInput::normal(kScalar), SampleInput::uniform(kScalar, 0.5, 2),
                                {{.why = "negative divisors",
                                  .inputs = {SampleInput::normal({DType::f32, {3, 5}}),
                                             SampleInput::uniform({DType::f32, {3, 5}}, -2, -0.5)},
                                  .attributes = {}},
                                 binary_extremes()});
        },
    .error_samples = numeric_binary_errors,
});

const OpRegistrar remainder_op(OpDef{
    .name = "remainder",
    .summary = "a - floor(a/b) b: the sign of b; integers: x % 0 = 0",
    .tags = Tag::elementwise,
    .scalar = ScalarOp::remainder,
    .infer = infer_numeric_binary,
    .vjp = remainder_vjp,
    .samples =
        [] {
          return binary_samples(
              SampleInput::uniform(kScalar, -4, 4), SampleInput::uniform(kScalar, 0.7, 1.3),
              {{.why = "negative divisors",
                .inputs = {SampleInput::uniform({DType::f32, {3, 5}}, -4, 4),
                           SampleInput::uniform({DType::f32, {3, 5}}, -1.3, -0.7)},
                .attributes = {}},
               given_sample(
                   "both signs, exact multiples, zeros",
                   {{7, -7, 7, -7, 6, -6, 0, 0.5, 1000}, {3, 3, -3, -3, 3, 3, 2, 2, 0.75}})});
        },
    .error_samples = numeric_binary_errors,
});

const OpRegistrar maximum_op(OpDef{
    .name = "maximum",
    .summary = "the larger; NaN if either is; a tie sends half of the cotangent each way",
    .tags = Tag::elementwise | Tag::commutative,
    .scalar = ScalarOp::maximum,
    .infer = infer_numeric_binary,
    .vjp = maximum_vjp,
    .samples =
        [] {
          return binary_samples(
              SampleInput::normal(kScalar), SampleInput::normal(kScalar),
              {binary_extremes(),
               given_sample("ties, NaN on either side", {{1, -2, 0, NAN, 3, NAN, -kInfinity},
                                                         {1, -2, 0, 2, NAN, NAN, -kInfinity}})});
        },
    .error_samples = numeric_binary_errors,
});

const OpRegistrar minimum_op(OpDef{
    .name = "minimum",
    .summary = "the smaller; NaN if either is; a tie sends half of the cotangent each way",
    .tags = Tag::elementwise | Tag::commutative,
    .scalar = ScalarOp::minimum,
    .infer = infer_numeric_binary,
    .vjp = minimum_vjp,
    .samples =
        [] {
          return binary_samples(
              SampleInput::normal(kScalar), SampleInput::normal(kScalar),
              {binary_extremes(),
               given_sample("ties, NaN on either side", {{1, -2, 0, NAN, 3, NAN, kInfinity},
                                                         {1, -2, 0, 2, NAN, NAN, kInfinity}})});
        },
    .error_samples = numeric_binary_errors,
});

}  // namespace

Tensor add(Operand a, Operand b) { return apply_broadcast("add", std::vector{a, b}); }
Tensor sub(Operand a, Operand b) { return apply_broadcast("sub", std::vector{a, b}); }
Tensor mul(Operand a, Operand b) { return apply_broadcast("mul", std::vector{a, b}); }
Tensor div(Operand a, Operand b) { return apply_broadcast("div", std::vector{a, b}); }
Tensor remainder(Operand a, Operand b) { return apply_broadcast("remainder", std::vector{a, b}); }
Tensor maximum(Operand a, Operand b) { return apply_broadcast("maximum", std::vector{a, b}); }
Tensor minimum(Operand a, Operand b) { return apply_broadcast("minimum", std::vector{a, b}); }

}  // namespace fullbore
