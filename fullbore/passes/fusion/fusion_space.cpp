#include "fullbore/passes/fusion/fusion_space.h"

#include <algorithm>

#include "fullbore/ir/op_def.h"
#include "fullbore/ops/op_handles.h"

namespace fullbore {
namespace {

constexpr int kMostNodes = 64;      // compile time grows faster than what is saved
constexpr int kMostReductions = 6;  // each may cost one more walk over the row
// Rows are what workers share: few rows with much work in each would leave most workers idle.
constexpr int64_t kFewRows = 8;
constexpr int64_t kSmallSpace = 1 << 14;
constexpr int kLittleWork = 4;

// Products of trailing extents: where one axis of the shape ends and the next begins.
std::set<int64_t> strides_of(const Shape& shape, int64_t unit) {
  std::set<int64_t> strides;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    strides.insert(unit);
    unit *= shape[axis];
  }
  strides.insert(unit);
  return strides;
}

bool divide_one_another(const std::set<int64_t>& strides) {
  int64_t previous = 1;
  for (int64_t stride : strides) {
    if (stride % previous != 0) return false;
    previous = stride;
  }
  return true;
}

bool are_consecutive(const std::vector<int64_t>& axes, int64_t first) {
  for (size_t i = 0; i < axes.size(); ++i)
    if (axes[i] != first + static_cast<int64_t>(i)) return false;
  return true;
}

// Is one number per row repeated along the row, and along nothing else?
bool repeats_rows(const FusionEdge& edge, int64_t width) {
  const Shape& to = edge.repeated_to;
  const int added = to.rank() - edge.repeated_from.rank();
  const auto from = [&](int axis) { return axis < added ? 1 : edge.repeated_from[axis - added]; };
  int64_t repeated = 1;
  int axis = to.rank() - 1;
  for (; axis >= 0 && repeated < width; --axis) {
    if (from(axis) != 1) return false;
    repeated *= to[axis];
  }
  if (repeated != width) return false;
  for (; axis >= 0; --axis)
    if (from(axis) != to[axis]) return false;
  return true;
}

}  // namespace

std::optional<FusionSpace> fusion_space(const Graph& graph, const Node& node) {
  if (node.inputs.empty() || node.outputs.size() != 1) return std::nullopt;
  FusionSpace space;
  space.nodes = 1;
  if (node.op->is(Tag::elementwise)) {
    const Shape& shape = graph.type(node.outputs[0]).shape;
    space.elements = shape.elements();
    space.strides = strides_of(shape, 1);
  } else if (node.op->is(Tag::reduction)) {
    const Shape& shape = graph.type(node.inputs[0]).shape;
    space.elements = shape.elements();
    space.strides = strides_of(shape, 1);
    space.reduced_shape = shape;
    space.axes = node.attributes.get<std::vector<int64_t>>("axes");
    const auto count = static_cast<int64_t>(space.axes.size());
    space.columns = !are_consecutive(space.axes, shape.rank() - count);
    if (space.columns && !are_consecutive(space.axes, 0)) return std::nullopt;
    space.width = 1;
    for (int64_t axis : space.axes) space.width *= shape[static_cast<int>(axis)];
    if (space.width <= 1) return std::nullopt;
    space.reductions = 1;
  } else {
    return std::nullopt;
  }
  return space.elements > 0 ? std::optional(space) : std::nullopt;
}

FusionEdge fusion_edge(const Graph& graph, Value operand) {
  FusionEdge edge{operand};
  while (const Node* node = graph.producer_node(edge.from)) {
    if (node->op == op::broadcast_to && !edge.repeated) {
      edge.repeated = true;
      edge.repeated_from = graph.type(node->inputs[0]).shape;
      edge.repeated_to = graph.type(edge.from).shape;
    } else if (!node->op->is(Tag::identity)) {
      break;
    }
    edge.from = node->inputs[0];
  }
  return edge;
}

std::optional<FusionSpace> fit_together(const FusionSpace& a, const FusionSpace& b) {
  if (a.columns || (b.columns && (a.width > 0 || a.elements != b.elements))) return std::nullopt;
  if (a.width > 0 && b.width > 0 && (a.reduced_shape != b.reduced_shape || a.axes != b.axes))
    return std::nullopt;
  FusionSpace space = a.width > 0 ? a : b;
  space.nodes = a.nodes + b.nodes;
  space.reductions = a.reductions + b.reductions;
  for (const FusionSpace* part : {&a, &b}) {
    // A group without reductions of its own may become what the other has one of per row.
    const bool per_row = part->width == 0 && space.is_row(part->elements);
    if (part->elements != space.elements && !per_row) return std::nullopt;
    for (int64_t stride : part->strides) space.strides.insert(stride * (per_row ? space.width : 1));
  }
  return divide_one_another(space.strides) ? std::optional(space) : std::nullopt;
}

std::optional<FusionSpace> join(const FusionSpace& a, const FusionSpace& b) {
  std::optional<FusionSpace> space = fit_together(a, b);
  if (!space || space->nodes > kMostNodes || space->reductions > kMostReductions)
    return std::nullopt;
  const bool few_rows = space->width > 0 && space->rows() < kFewRows;
  if (few_rows && space->elements > kSmallSpace && space->nodes > kLittleWork) return std::nullopt;
  return space;
}

bool admit(FusionSpace& space, const Graph& graph, Value operand) {
  const FusionEdge edge = fusion_edge(graph, operand);
  const Shape& from = graph.type(edge.from).shape;
  const Shape& to = graph.type(operand).shape;
  const bool whole = to.elements() == space.elements;
  if (edge.repeated) {
    if (!space.is_row(from.elements()) || !whole || !repeats_rows(edge, space.width)) return false;
    space.strides.merge(strides_of(edge.repeated_to, 1));
    space.strides.merge(strides_of(edge.repeated_from, space.width));
  } else if (from.elements() != to.elements() || (!whole && !space.is_row(to.elements()))) {
    return false;
  }
  space.strides.merge(strides_of(to, whole ? 1 : space.width));
  return divide_one_another(space.strides);
}

bool fits(const FusionSpace& space, const Shape& shape) {
  std::set<int64_t> strides = space.strides;
  strides.merge(strides_of(shape, 1));
  return shape.elements() == space.elements && divide_one_another(strides);
}

}  // namespace fullbore
