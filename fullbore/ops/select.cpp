#include <cmath>

#include "fullbore/base/error.h"
#include "fullbore/ops/rules.h"

namespace fullbore {
namespace {

std::vector<TensorType> infer(const OpCall& call) {
  require_inputs(call, 3);
  require_dtype(call, 0, "condition", DTypeSet::boolean);
  require_same_dtype(call, 1, "a", 2, "b");
  require_same_shape(call, 1, "a", 2, "b");
  require_same_shape(call, 0, "condition", 1, "a");
  return {call.inputs[1]};
}

std::vector<Tensor> vjp(const VjpCall& call) {
  const Tensor &condition = call.inputs[0], &dy = call.cotangents[0];
  return {Tensor{}, call.wanted[1] ? select(condition, dy, 0.0) : Tensor{},
          call.wanted[2] ? select(condition, 0.0, dy) : Tensor{}};
}

std::vector<Sample> samples() {
  const SampleInput condition = SampleInput::integers({DType::boolean, {}}, 0, 2);
  const SampleInput normal = SampleInput::normal({DType::f32, {}});
  const SampleInput truths = SampleInput::integers({DType::boolean, {3, 7}}, 0, 2);
  const SampleInput integers = SampleInput::integers({DType::i64, {3, 7}}, -9, 9);
  const SampleInput bytes = SampleInput::integers({DType::u8, {3, 7}}, 0, 256);
  const TensorType four{DType::f32, {4}};
  return with(elementwise_samples({condition, normal, normal}),
              {{.why = "integers", .inputs = {truths, integers, integers}, .attributes = {}},
               {.why = "bytes", .inputs = {truths, bytes, bytes}, .attributes = {}},
               {.why = "truth values", .inputs = {truths, truths, truths}, .attributes = {}},
               {.why = "NaN and infinity stay in the branch that is not taken",
                .inputs = {SampleInput::given({DType::boolean, {4}}, {1, 0, 1, 0}),
                           SampleInput::given(four, {1, NAN, -3, HUGE_VAL}),
                           SampleInput::given(four, {NAN, 2, HUGE_VAL, -4})},
                .attributes = {},
                .gradcheck = false}});
}

std::vector<ErrorSample> error_samples() {
  const TensorType condition{DType::boolean, {4}}, a{DType::f32, {4}}, other{DType::f32, {5}};
  return {{"a condition that is no truth value", {a, a, a}, {}, "needs bool condition, got f32[4]"},
          {"two dtypes",
           {condition, a, {DType::i32, {4}}},
           {},
           "a f32[4] and b i32[4] differ in dtype"},
          {"two shapes", {condition, a, other}, {}, "a f32[4] and b f32[5] differ in shape"},
          {"another shape of the condition",
           {condition, other, other},
           {},
           "condition bool[4] and a f32[5] differ in shape"},
          {"two operands", {condition, a}, {}, "needs 3 operands, got 2"}};
}

const OpRegistrar registrar(OpDef{.name = "select",
                                  .summary = "condition ? a : b",
                                  .tags = Tag::elementwise,
                                  .scalar = ScalarOp::select,
                                  .infer = infer,
                                  .vjp = vjp,
                                  .samples = samples,
                                  .error_samples = error_samples});

}  // namespace

Tensor select(Tensor condition, Operand a, Operand b) {
  require_tensor("select", "condition", condition, a.loc);
  if (a.is_number && b.is_number)
    throw UsageError("select: a and b are both numbers: one must be a Tensor to give the dtype",
                     a.loc);
  // A number takes the dtype of the other branch, not of the condition.
  const auto branch = [&](const Operand& operand, const Operand& other) {
    if (!operand.is_number) return operand;
    require_tensor("select", "a branch", other.tensor, other.loc);
    return Operand(number_tensor("select", condition.builder(), other.tensor.dtype(),
                                 operand.number, operand.loc),
                   operand.loc);
  };
  return apply_broadcast("select",
                         std::vector{Operand(condition, a.loc), branch(a, b), branch(b, a)},
                         {"condition", "a", "b"});
}

}  // namespace fullbore
