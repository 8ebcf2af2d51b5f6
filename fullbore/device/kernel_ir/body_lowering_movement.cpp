#include <fmt/format.h>

#include <algorithm>

#include "fullbore/device/kernel_ir/body_lowering.h"
#include "fullbore/ir/op_def.h"
#include "fullbore/ops/op_handles.h"

namespace fullbore::jit {
namespace {

using Kind = Instruction::Kind;

size_t axis_of(const Node& node) {
  return static_cast<size_t>(node.attributes.get<int64_t>("axis"));
}

}  // namespace

// Ops that only change which element is meant.
int BodyLowering::build_movement(const Node& node, const IndexMap& map) {
  if (node.op == op::pad) return build_pad(node, map);
  if (node.op == op::concat) return build_concat(node, map);
  if (node.inputs.empty()) fail(fmt::format("{} is not lowered", node.op->name));
  const Value x = node.inputs[0];
  const Shape& from = graph_.type(x).shape;
  const Shape& to = graph_.type(node.outputs[0]).shape;
  IndexMap inner{{}, map.predicates};
  if (node.op == op::broadcast_to) {
    const int added = to.rank() - from.rank();
    for (int axis = 0; axis < from.rank(); ++axis)
      inner.axes.push_back(from[axis] == to[axis + added]
                               ? map.axes[static_cast<size_t>(axis + added)]
                               : AxisIndex{domain_.zero(), 1});
  } else if (node.op == op::transpose) {
    const auto& permutation = node.attributes.get<std::vector<int64_t>>("permutation");
    inner.axes.resize(permutation.size());
    for (size_t i = 0; i < permutation.size(); ++i)
      inner.axes[static_cast<size_t>(permutation[i])] = map.axes[i];
  } else if (node.op == op::slice) {
    inner = map;
    AxisIndex& index = inner.axes[axis_of(node)];
    index.form = shifted(scaled(index.form, node.attributes.get<int64_t>("stride")),
                         node.attributes.get<int64_t>("start") * index.divisor);
  } else if (node.op == op::reverse) {
    inner = map;
    AxisIndex& index = inner.axes[axis_of(node)];
    const int64_t last = from[static_cast<int>(axis_of(node))] - 1;
    index.form = shifted(scaled(index.form, -1), last * index.divisor);
  } else if (node.op->is(Tag::identity)) {
    inner = from == to ? map : reshaped(map, to, from);
  } else {
    fail(fmt::format("{} is not lowered", node.op->name));
  }
  return build(x, inner);
}

int BodyLowering::build_source(const Node& node, const IndexMap& map) {
  const DType dtype = graph_.type(node.outputs[0]).dtype;
  if (node.op == op::iota) {
    const AxisIndex& index = map.axes[axis_of(node)];
    Instruction instruction;
    instruction.kind = Kind::index;
    instruction.dtype = index.divisor == 1 ? dtype : DType::i64;
    instruction.form = index.form;
    const int position = emit(std::move(instruction));
    if (index.divisor == 1) return position;
    // Within a spread pad; between its elements, what is not whole is cut off and not used.
    const int whole = scalar(ScalarOp::div, DType::i64,
                             {position, constant(DType::i64, static_cast<double>(index.divisor))});
    return scalar(ScalarOp::cast, dtype, {whole});
  }
  if (node.op != op::constant) fail(fmt::format("{} is not lowered", node.op->name));
  const auto& values = node.attributes.get<std::vector<double>>("values");
  if (values.empty()) return constant(dtype, 0);
  // Bits, not numbers: a table of NaNs is all one value, 0 and -0 are two.
  if (!std::all_of(values.begin(), values.end(), [&](double value) {
        return std::bit_cast<int64_t>(value) == std::bit_cast<int64_t>(values[0]);
      }))
    fail("a constant table inside");
  return constant(dtype, values[0]);
}

// A load is zero by itself where its predicates do not hold, and so is what it is cast to.
bool BodyLowering::is_zero_outside(int value) const {
  const Instruction& made = kernel_.instructions[static_cast<size_t>(value)];
  if (made.kind == Kind::scalar && made.op == ScalarOp::cast)
    return is_zero_outside(made.operands[0]);
  return made.kind == Kind::load;
}

int BodyLowering::build_pad(const Node& node, const IndexMap& map) {
  const size_t axis = axis_of(node);
  const auto before = node.attributes.get<int64_t>("before");
  const auto after = node.attributes.get<int64_t>("after");
  const int64_t step = node.attributes.get<int64_t>("interior") + 1;
  const int64_t extent = graph_.type(node.inputs[0]).shape[static_cast<int>(axis)];
  IndexMap inner = map;
  AxisIndex& index = inner.axes[axis];
  const int64_t divisor = index.divisor;
  index.form = shifted(index.form, -before * divisor);
  index.divisor = divisor * step;
  std::vector<Predicate> own;
  if (before > 0 || after > 0 || step > 1 || extent == 0)
    own.push_back(
        {index.form, extent == 0 ? 0 : ((extent - 1) * step + 1) * divisor, divisor * step});
  for (const Predicate& predicate : own) inner.predicates.push_back(predicate);
  const DType dtype = graph_.type(node.outputs[0]).dtype;
  const int value = build(node.inputs[0], inner);
  return is_zero_outside(value) ? value : guarded(own, value, constant(dtype, 0));
}

// Each part where it is, tested one after the other. (A concat by itself is copied part by part.)
int BodyLowering::build_concat(const Node& node, const IndexMap& map) {
  const size_t axis = axis_of(node);
  int result = -1;
  int64_t start = graph_.type(node.outputs[0]).shape[static_cast<int>(axis)];
  for (size_t i = node.inputs.size(); i-- > 0;) {
    const int64_t extent = graph_.type(node.inputs[i]).shape[static_cast<int>(axis)];
    start -= extent;
    if (extent == 0 && i > 0) continue;
    IndexMap inner = map;
    AxisIndex& index = inner.axes[axis];
    index.form = shifted(index.form, -start * index.divisor);
    const Predicate own{index.form, extent * index.divisor, 1};
    inner.predicates.push_back(own);
    const int value = build(node.inputs[i], inner);
    result = result < 0 ? value : guarded({own}, value, result);
  }
  return result;
}

int BodyLowering::build_dynamic_slice(const Node& node, const IndexMap& map) {
  const size_t axis = axis_of(node);
  const int64_t extent = graph_.type(node.inputs[0]).shape[static_cast<int>(axis)];
  const int64_t window = graph_.type(node.outputs[0]).shape[static_cast<int>(axis)];
  const int start = symbol(node.inputs[1], extent - window);
  IndexMap inner = map;
  AxisIndex& index = inner.axes[axis];
  index.form = sum(index.form, scaled(domain_.symbol(start), index.divisor));
  return build(node.inputs[0], inner);
}

int BodyLowering::build_dynamic_update(const Node& node, const IndexMap& map) {
  const size_t axis = axis_of(node);
  const int64_t extent = graph_.type(node.inputs[0]).shape[static_cast<int>(axis)];
  const int64_t window = graph_.type(node.inputs[1]).shape[static_cast<int>(axis)];
  const int start = symbol(node.inputs[2], extent - window);
  IndexMap inner = map;
  AxisIndex& index = inner.axes[axis];
  index.form = sum(index.form, scaled(domain_.symbol(start), -index.divisor));
  const Predicate own{index.form, window * index.divisor, 1};
  inner.predicates.push_back(own);
  const int update = build(node.inputs[1], inner);
  return guarded({own}, update, build(node.inputs[0], map));
}

}  // namespace fullbore::jit
