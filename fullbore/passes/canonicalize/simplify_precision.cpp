#include <utility>

#include "fullbore/passes/canonicalize/simplify_rules.h"

#include "fullbore/ops/op_handles.h"

namespace fullbore {
namespace {

bool rearranges(const OpDef& op) {
  return op == op::reshape || op == op::transpose || op == op::reverse;
}

bool is_cast(const OpDef& op) { return op.is(Tag::elementwise) && op.scalar == ScalarOp::cast; }

// The call on another operand, of another dtype.
SimplifyCall changed(const SimplifyCall& call, Tensor operand) {
  SimplifyCall result = call;
  result.inputs = {operand};
  result.type.dtype = operand.dtype();
  return result;
}

Tensor simplified_cast(Tensor x, DType dtype) {
  return simplified(x.builder(), {&op::cast.get(), {x}, {{"dtype", dtype}}, {dtype, x.shape()}});
}

// cast(move(x)) -> move(cast(x)) where the cast narrows. Not through slices, of which the cast is
// smaller.
Simpler narrow_before(const SimplifyCall& c) {
  const Tensor x = c.inputs[0];
  if (!is_low_precision(c.type.dtype) || x.dtype() != DType::f32) return {};
  const Node* moved = x.builder().graph().producer_node(x.value());
  if (!moved || !(rearranges(*moved->op) || moved->op == op::broadcast_to)) return {};
  SimplifyCall move{moved->op, {operand(x, *moved)}, moved->attributes, c.type};
  move.inputs[0] =
      simplified_cast(move.inputs[0], c.type.dtype);  // the graph grows: no `moved` now
  return {.call = std::move(move)};
}

// move(cast(x)) -> cast(move(x)) where the cast widens.
Simpler widen_after(const SimplifyCall& c) {
  if (c.inputs.size() != 1 || c.type.dtype != DType::f32) return {};
  if (!rearranges(*c.op) && c.op != op::slice && c.op != op::pad) return {};
  const Node* widened = made_by(c.inputs[0], op::cast);
  if (!widened) return {};
  const Tensor source = operand(c.inputs[0], *widened);
  if (!is_low_precision(source.dtype())) return {};
  const Tensor moved = simplified(source.builder(), changed(c, source));
  return {.call = SimplifyCall{&op::cast.get(), {moved}, {{"dtype", c.type.dtype}}, c.type}};
}

// gather(cast(table)) -> cast(gather(table)) where the cast widens: a table that is stored in few bits is not widened
// whole for the rows that are read.
Simpler widen_rows(const SimplifyCall& c) {
  if (c.op != op::gather || c.type.dtype != DType::f32) return {};
  const Node* widened = made_by(c.inputs[0], op::cast);
  if (!widened) return {};
  const Tensor table = operand(c.inputs[0], *widened);
  if (!is_low_precision(table.dtype())) return {};
  SimplifyCall rows = c;
  rows.inputs[0] = table;
  rows.type.dtype = table.dtype();
  const Tensor gathered = simplified(table.builder(), rows);
  return {.call = SimplifyCall{&op::cast.get(), {gathered}, {{"dtype", c.type.dtype}}, c.type}};
}

}  // namespace

Simpler simplify_precision(const SimplifyCall& c) {
  if (is_cast(*c.op)) return narrow_before(c);
  return c.op == op::gather ? widen_rows(c) : widen_after(c);
}

}  // namespace fullbore
