#include <cmath>

#include "fullbore/ops/rules.h"

/// What answers with a truth value, and logic on truth values. No attributes, no gradients.
namespace fullbore {
namespace {

const TensorType kScalar{DType::f32, {}};
const TensorType kTruths{DType::boolean, {}};
const double kInfinity = HUGE_VAL;

std::vector<TensorType> infer_is_finite(const OpCall& call) {
  const std::vector<TensorType> types = infer_floating_unary(call);
  return {{DType::boolean, types[0].shape}};
}

// Equality is defined for truth values too, order for numbers only.
std::vector<TensorType> infer_comparison(const OpCall& call, DTypeSet set) {
  require_inputs(call, 2);
  require_dtype(call, 0, "a", set);
  require_same_dtype(call, 0, "a", 1, "b");
  require_same_shape(call, 0, "a", 1, "b");
  return {{DType::boolean, call.inputs[0].shape}};
}
std::vector<TensorType> infer_equality(const OpCall& call) {
  return infer_comparison(call, DTypeSet::any);
}
std::vector<TensorType> infer_order(const OpCall& call) {
  return infer_comparison(call, DTypeSet::numeric);
}

std::vector<TensorType> infer_logical_not(const OpCall& call) {
  require_inputs(call, 1);
  require_dtype(call, 0, "x", DTypeSet::boolean);
  return {call.inputs[0]};
}

std::vector<Sample> order_samples() {
  const auto integers = [](std::string why, DType dtype, double low, double high) {
    const SampleInput input = SampleInput::integers({dtype, {5, 7}}, low, high);
    return Sample{.why = std::move(why), .inputs = {input, input}, .attributes = {}};
  };
  const SampleInput normal = SampleInput::normal(kScalar).constant();
  return with(
      elementwise_samples({normal, normal}),
      {given_sample("ties, signed zeros, NaN, infinities, neighbours",
                    {{1, 0, -0.0, NAN, NAN, 1, kInfinity, kInfinity, -kInfinity, 1e-40, 1, -1000},
                     {1, -0.0, 0, NAN, 1, NAN, kInfinity, 1, 1, 0, 1.0078125, 1000}}),
       integers("integers with ties", DType::i32, -3, 3),
       integers("64 bits", DType::i64, -1e15, 1e15), integers("bytes", DType::u8, 0, 256)});
}

std::vector<Sample> equality_samples() {
  const TensorType type{DType::boolean, {4}};
  return with(
      order_samples(),
      {{.why = "truth values",
        .inputs = {SampleInput::given(type, {0, 0, 1, 1}), SampleInput::given(type, {0, 1, 0, 1})},
        .attributes = {}}});
}

std::vector<ErrorSample> equality_errors() {
  std::vector<ErrorSample> errors = numeric_binary_errors();
  errors.erase(errors.begin());  // every dtype is compared
  return errors;
}

std::vector<Sample> logic_samples() {
  const SampleInput truths = SampleInput::integers(kTruths, 0, 2);
  return elementwise_samples({truths, truths});
}

const OpRegistrar is_finite_op(OpDef{
    .name = "is_finite",
    .summary = "neither infinite nor NaN",
    .tags = Tag::elementwise | Tag::zero_gradient,
    .scalar = ScalarOp::is_finite,
    .infer = infer_is_finite,
    .samples =
        [] {
          return with(elementwise_samples({SampleInput::normal(kScalar).constant()}),
                      {given_sample("infinities, NaN, largest, denormal",
                                    {{kInfinity, -kInfinity, NAN, 3e38, -3e38, 0, 1e-40, 65504}})});
        },
    .error_samples = floating_unary_errors,
});

const OpRegistrar equal_op(OpDef{
    .name = "equal",
    .summary = "a == b; NaN equals nothing",
    .tags = Tag::elementwise | Tag::zero_gradient | Tag::commutative,
    .scalar = ScalarOp::equal,
    .infer = infer_equality,
    .samples = equality_samples,
    .error_samples = equality_errors,
});

const OpRegistrar not_equal_op(OpDef{
    .name = "not_equal",
    .summary = "a != b; NaN differs from everything",
    .tags = Tag::elementwise | Tag::zero_gradient | Tag::commutative,
    .scalar = ScalarOp::not_equal,
    .infer = infer_equality,
    .samples = equality_samples,
    .error_samples = equality_errors,
});

const OpRegistrar less_op(OpDef{
    .name = "less",
    .summary = "a < b; false with NaN",
    .tags = Tag::elementwise | Tag::zero_gradient,
    .scalar = ScalarOp::less,
    .infer = infer_order,
    .samples = order_samples,
    .error_samples = numeric_binary_errors,
});

const OpRegistrar less_equal_op(OpDef{
    .name = "less_equal",
    .summary = "a <= b; false with NaN",
    .tags = Tag::elementwise | Tag::zero_gradient,
    .scalar = ScalarOp::less_equal,
    .infer = infer_order,
    .samples = order_samples,
    .error_samples = numeric_binary_errors,
});

const OpRegistrar logical_not_op(OpDef{
    .name = "logical_not",
    .summary = "not x",
    .tags = Tag::elementwise | Tag::zero_gradient,
    .scalar = ScalarOp::logical_not,
    .infer = infer_logical_not,
    .samples = [] { return elementwise_samples({SampleInput::integers(kTruths, 0, 2)}); },
    .error_samples = []() -> std::vector<ErrorSample> {
      return {{"floats", {{DType::f32, {4}}}, {}, "needs bool x, got f32[4]"},
              {"no operand", {}, {}, "needs 1 operands, got 0"}};
    },
    .dtypes = {},
});

const OpRegistrar logical_and_op(OpDef{
    .name = "logical_and",
    .summary = "a and b",
    .tags = Tag::elementwise | Tag::zero_gradient | Tag::commutative,
    .scalar = ScalarOp::logical_and,
    .infer = infer_boolean_binary,
    .samples = logic_samples,
    .error_samples = boolean_binary_errors,
    .dtypes = {},
});

const OpRegistrar logical_or_op(OpDef{
    .name = "logical_or",
    .summary = "a or b",
    .tags = Tag::elementwise | Tag::zero_gradient | Tag::commutative,
    .scalar = ScalarOp::logical_or,
    .infer = infer_boolean_binary,
    .samples = logic_samples,
    .error_samples = boolean_binary_errors,
    .dtypes = {},
});

}  // namespace

Tensor is_finite(Tensor x, SourceLoc loc) { return apply("is_finite", {x}, {}, loc); }
Tensor equal(Operand a, Operand b) { return apply_broadcast("equal", std::vector{a, b}); }
Tensor not_equal(Operand a, Operand b) { return apply_broadcast("not_equal", std::vector{a, b}); }
Tensor less(Operand a, Operand b) { return apply_broadcast("less", std::vector{a, b}); }
Tensor less_equal(Operand a, Operand b) { return apply_broadcast("less_equal", std::vector{a, b}); }
Tensor greater(Operand a, Operand b) { return less(b, a); }
Tensor greater_equal(Operand a, Operand b) { return less_equal(b, a); }
Tensor logical_not(Tensor x, SourceLoc loc) { return apply("logical_not", {x}, {}, loc); }
Tensor logical_and(Operand a, Operand b) {
  return apply_broadcast("logical_and", std::vector{a, b});
}
Tensor logical_or(Operand a, Operand b) { return apply_broadcast("logical_or", std::vector{a, b}); }

}  // namespace fullbore
