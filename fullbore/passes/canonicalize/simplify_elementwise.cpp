#include <cmath>

#include "fullbore/ops/op_handles.h"
#include "fullbore/ops/ops.h"
#include "fullbore/passes/canonicalize/simplify_rules.h"

namespace fullbore {
namespace {

Simpler call(const SimplifyCall& like, const OpDef& op, std::vector<Tensor> inputs,
             Attributes attributes = {}) {
  return {.call = SimplifyCall{&op, std::move(inputs), std::move(attributes), like.type}};
}

bool same(Tensor a, Tensor b) { return a.value() == b.value(); }

// Does every value of `from` exist in `to`?
bool lossless(DType from, DType to) {
  if (from == to || from == DType::boolean) return true;
  switch (from) {
    case DType::u8: return to != DType::boolean && to != DType::i8;
    case DType::i8: return to != DType::boolean && to != DType::u8;
    case DType::i32: return to == DType::i64 || to == DType::f64;
    case DType::f16:
    case DType::bf16: return to == DType::f32 || to == DType::f64;
    case DType::f32: return to == DType::f64;
    default: return false;
  }
}

Simpler simplify_cast(const SimplifyCall& c) {
  const Tensor x = c.inputs[0];
  if (x.dtype() == c.type.dtype) return {x};
  const Node* inner = made_by(x, op::cast);
  if (!inner) return {};
  const Tensor source = operand(x, *inner);
  if (!lossless(source.dtype(), x.dtype())) return {};
  if (source.dtype() == c.type.dtype) return {source};
  return call(c, op::cast, {source}, {{"dtype", c.type.dtype}});
}

// neg neg x, not not x.
Simpler simplify_involution(const SimplifyCall& c) {
  const Node* inner = made_by(c.inputs[0], *c.op);
  return inner ? Simpler{operand(c.inputs[0], *inner)} : Simpler{};
}

Simpler simplify_add(const SimplifyCall& c) {
  if (number_everywhere(c.inputs[1]) == 0.0) return {c.inputs[0]};
  if (number_everywhere(c.inputs[0]) == 0.0) return {c.inputs[1]};
  if (const Node* negated = made_by(c.inputs[1], op::neg))
    return call(c, op::sub, {c.inputs[0], operand(c.inputs[1], *negated)});
  return {};
}

Simpler simplify_sub(const SimplifyCall& c) {
  if (number_everywhere(c.inputs[1]) == 0.0) return {c.inputs[0]};
  if (const Node* negated = made_by(c.inputs[1], op::neg))
    return call(c, op::add, {c.inputs[0], operand(c.inputs[1], *negated)});
  return {};
}

Simpler simplify_mul(const SimplifyCall& c) {
  for (size_t i = 0; i < 2; ++i) {
    const std::optional<double> factor = number_everywhere(c.inputs[i]);
    if (factor == 1.0) return {c.inputs[1 - i]};
    if (factor == -1.0 && c.type.dtype != DType::u8) return call(c, op::neg, {c.inputs[1 - i]});
  }
  return {};
}

// `value` everywhere, as algebraic_simplification itself would write it.
Tensor number_like(const SimplifyCall& c, double value) {
  const Tensor number = full(c.inputs[0].builder(), {c.type.dtype, {}}, value);
  if (c.type.shape.rank() == 0) return number;
  return c.type.elements() == 1 ? reshape(number, c.type.shape)
                                : broadcast_to(number, c.type.shape);
}

// Division by a power of two is multiplication by its reciprocal, exactly, unless that is denormal
// or the power is.
Simpler simplify_div(const SimplifyCall& c) {
  const std::optional<double> divisor = number_everywhere(c.inputs[1]);
  if (divisor == 1.0) return {c.inputs[0]};
  if (!divisor || !is_floating(c.type.dtype) || !std::isfinite(*divisor)) return {};
  int exponent = 0;
  const bool power = std::abs(std::frexp(*divisor, &exponent)) == 0.5;
  const double smallest = dtype_smallest_normal(c.type.dtype);
  if (!power || std::abs(*divisor) < smallest || std::abs(1 / *divisor) < smallest) return {};
  return call(c, op::mul, {c.inputs[0], number_like(c, 1 / *divisor)});
}

Simpler simplify_pow(const SimplifyCall& c) {
  const std::optional<double> exponent = number_everywhere(c.inputs[1]);
  if (exponent == 1.0) return {c.inputs[0]};
  if (exponent == 2.0) return call(c, op::mul, {c.inputs[0], c.inputs[0]});
  return {};
}

Simpler simplify_logic(const SimplifyCall& c) {
  const bool conjunction = c.op->scalar == ScalarOp::logical_and;
  if (same(c.inputs[0], c.inputs[1])) return {c.inputs[0]};
  for (size_t i = 0; i < 2; ++i) {
    const std::optional<double> truth = number_everywhere(c.inputs[i]);
    if (truth) return {(*truth != 0) == conjunction ? c.inputs[1 - i] : c.inputs[i]};
  }
  return {};
}

Simpler simplify_select(const SimplifyCall& c) {
  if (same(c.inputs[1], c.inputs[2])) return {c.inputs[1]};
  if (const std::optional<double> truth = number_everywhere(c.inputs[0]))
    return {c.inputs[*truth != 0 ? 1 : 2]};
  if (const Node* negated = made_by(c.inputs[0], op::logical_not))
    return call(c, *c.op, {operand(c.inputs[0], *negated), c.inputs[2], c.inputs[1]});
  return {};
}

}  // namespace

Simpler simplify_elementwise(const SimplifyCall& c) {
  if (!c.op->is(Tag::elementwise)) return {};
  switch (c.op->scalar) {
    case ScalarOp::cast: return simplify_cast(c);
    case ScalarOp::neg:
    case ScalarOp::logical_not: return simplify_involution(c);
    case ScalarOp::add: return simplify_add(c);
    case ScalarOp::sub: return simplify_sub(c);
    case ScalarOp::mul: return simplify_mul(c);
    case ScalarOp::div: return simplify_div(c);
    case ScalarOp::pow: return simplify_pow(c);
    case ScalarOp::maximum:
    case ScalarOp::minimum:
      return same(c.inputs[0], c.inputs[1]) ? Simpler{c.inputs[0]} : Simpler{};
    case ScalarOp::logical_and:
    case ScalarOp::logical_or: return simplify_logic(c);
    case ScalarOp::select: return simplify_select(c);
    default: return {};
  }
}

}  // namespace fullbore
