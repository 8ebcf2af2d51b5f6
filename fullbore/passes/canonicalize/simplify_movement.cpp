#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "fullbore/ops/op_handles.h"
#include "fullbore/passes/canonicalize/simplify_rules.h"

namespace fullbore {
namespace {

using Axes = std::vector<int64_t>;

Simpler call(const SimplifyCall& like, const OpDef& op, std::vector<Tensor> inputs,
             Attributes attributes) {
  return {.call = SimplifyCall{&op, std::move(inputs), std::move(attributes), like.type}};
}

// The same elements in the same order.
Simpler as_reshape(const SimplifyCall& c) {
  return call(c, op::reshape, {c.inputs[0]}, {{"shape", c.type.shape.dims()}});
}

Simpler simplify_identity(const SimplifyCall& c) {
  const Tensor x = c.inputs[0];
  if (x.type() == c.type) return {x};
  const Node* inner = made_by(x, op::reshape);
  if (!inner) return {};
  return call(c, op::reshape, {operand(x, *inner)}, {{"shape", c.type.shape.dims()}});
}

Simpler simplify_broadcast(const SimplifyCall& c) {
  const Tensor x = c.inputs[0];
  if (x.shape() == c.type.shape) return {x};
  if (const Node* inner = made_by(x, op::broadcast_to))
    return call(c, op::broadcast_to, {operand(x, *inner)}, {{"shape", c.type.shape.dims()}});
  return x.type().elements() == c.type.elements() && x.type().elements() > 0 ? as_reshape(c)
                                                                             : Simpler{};
}

// Axes of extent 1 may move freely.
bool keeps_order(const Axes& permutation, const Shape& shape) {
  int64_t last = -1;
  for (int64_t axis : permutation) {
    if (shape[static_cast<int>(axis)] == 1) continue;
    if (axis < last) return false;
    last = axis;
  }
  return true;
}

Simpler simplify_transpose(const SimplifyCall& c) {
  const Tensor x = c.inputs[0];
  const auto& permutation = c.attributes.get<Axes>("permutation");
  if (std::is_sorted(permutation.begin(), permutation.end())) return {x};
  if (keeps_order(permutation, x.shape())) return as_reshape(c);
  const Node* inner = made_by(x, op::transpose);
  if (!inner) return {};
  const Axes& first = inner->attributes.get<Axes>("permutation");
  Axes both;
  for (int64_t axis : permutation) both.push_back(first[static_cast<size_t>(axis)]);
  return call(c, op::transpose, {operand(x, *inner)}, {{"permutation", both}});
}

Simpler simplify_slice(const SimplifyCall& c) {
  const Tensor x = c.inputs[0];
  if (x.shape() == c.type.shape) return {x};
  const Node* inner = made_by(x, op::slice);
  const auto number = [](const Attributes& attributes, std::string_view name) {
    return attributes.get<int64_t>(name);
  };
  const int64_t axis = number(c.attributes, "axis");
  const int64_t taken = c.type.shape[static_cast<int>(axis)];
  if (!inner || taken == 0 || number(inner->attributes, "axis") != axis) return {};
  const int64_t stride = number(inner->attributes, "stride");
  const int64_t start = number(inner->attributes, "start") + number(c.attributes, "start") * stride;
  const int64_t step = stride * number(c.attributes, "stride");
  return call(c, op::slice, {operand(x, *inner)},
              {{"axis", axis},
               {"start", start},
               {"stop", start + (taken - 1) * step + 1},
               {"stride", step}});
}

Simpler simplify_pad(const SimplifyCall& c) {
  for (const char* width : {"before", "after", "interior"})
    if (c.attributes.get<int64_t>(width) != 0) return {};
  return {c.inputs[0]};
}

bool is_zero(Tensor x) {
  const std::optional<double> number = number_everywhere(x);
  return number && *number == 0 && !std::signbit(*number);
}

// Zeros around something are a pad of it, which kernels read without its being made.
Simpler simplify_concat(const SimplifyCall& c) {
  if (c.inputs.size() == 1) return {c.inputs[0]};
  const auto axis = c.attributes.get<int64_t>("axis");
  const bool first = is_zero(c.inputs.front());
  if (!first && !is_zero(c.inputs.back())) return {};
  const int64_t zeros = (first ? c.inputs.front() : c.inputs.back()).dim(static_cast<int>(axis));
  std::vector<Tensor> rest(c.inputs.begin() + (first ? 1 : 0), c.inputs.end() - (first ? 0 : 1));
  SimplifyCall joined = c;
  joined.inputs = std::move(rest);
  joined.type.shape[static_cast<int>(axis)] -= zeros;
  return call(c, op::pad, {simplified(c.inputs[0].builder(), std::move(joined))},
              {{"axis", axis},
               {"before", first ? zeros : 0},
               {"after", first ? 0 : zeros},
               {"interior", int64_t{0}}});
}

Simpler simplify_reverse(const SimplifyCall& c) {
  const Tensor x = c.inputs[0];
  if (x.dim(static_cast<int>(c.attributes.get<int64_t>("axis"))) <= 1) return {x};
  const Node* inner = made_by(x, op::reverse);
  return inner && inner->attributes == c.attributes ? Simpler{operand(x, *inner)} : Simpler{};
}

// Reduced along leading axes and others: along the leading ones first, as one sum of columns, which is fused with what it sums
// (passes/fusion/fusion_space.h). The rest is small. Where the others are long rows (images of a batch normalisation), along
// them first: they are summed in registers as they lie, where columns would be read a page apart.
Simpler in_two_steps(const SimplifyCall& c) {
  constexpr int64_t kManyRows = 16;
  constexpr int64_t kLongRow = 256;
  const Axes& axes = c.attributes.get<Axes>("axes");
  const Tensor x = c.inputs[0];
  Axes leading, rest;
  int64_t rows = 1, row = 1;
  for (int64_t axis : axes) {
    if (axis == static_cast<int64_t>(leading.size())) {
      rows *= x.dim(static_cast<int>(axis));
      leading.push_back(axis);
    } else {
      rest.push_back(axis);
      row *= x.dim(static_cast<int>(axis));
    }
  }
  if (rest.empty() || rows < kManyRows) return {};
  if (row >= kLongRow && rest.front() + std::ssize(rest) == x.rank()) {
    const Tensor sums = x.builder().emit(*c.op, std::array{x}, {{"axes", rest}}, {})[0];
    return call(c, *c.op, {sums}, {{"axes", leading}});
  }
  for (int64_t& axis : rest) axis -= static_cast<int64_t>(leading.size());
  const Tensor columns = x.builder().emit(*c.op, std::array{x}, {{"axes", leading}}, {})[0];
  return call(c, *c.op, {columns}, {{"axes", rest}});
}

// A reduction over axes of extent 1 has one term per result.
Simpler simplify_reduction(const SimplifyCall& c) {
  const auto& axes = c.attributes.get<Axes>("axes");
  const bool trivial = std::all_of(axes.begin(), axes.end(), [&](int64_t axis) {
    return c.inputs[0].dim(static_cast<int>(axis)) == 1;
  });
  if (trivial) return as_reshape(c);
  return in_two_steps(c);
}

// Does the node exchange the last two axes and leave all others?
bool exchanges_last_two(const Node& transpose) {
  const auto& permutation = transpose.attributes.get<Axes>("permutation");
  if (permutation.size() < 2) return false;
  Axes exchanged(permutation.size());
  std::iota(exchanged.begin(), exchanged.end(), 0);
  std::swap(exchanged[exchanged.size() - 1], exchanged[exchanged.size() - 2]);
  return permutation == exchanged;
}

// Contractions read their operands either way round.
Simpler simplify_matmul(const SimplifyCall& c) {
  const char* const flags[] = {"transpose_a", "transpose_b"};
  for (size_t i = 0; i < 2; ++i) {
    const Node* inner = made_by(c.inputs[i], op::transpose);
    if (!inner || !exchanges_last_two(*inner)) continue;
    SimplifyCall changed = c;
    changed.inputs[i] = operand(c.inputs[i], *inner);
    changed.attributes.set(flags[i], !c.attributes.get<bool>(flags[i]));
    return {.call = std::move(changed)};
  }
  return {};
}

}  // namespace

const Node* made_by(Tensor x, const OpDef& op) {
  const Node* node = x.builder().graph().producer_node(x.value());
  return node && node->op == &op ? node : nullptr;
}

Simpler simplify_movement(const SimplifyCall& c) {
  if (c.op->is(Tag::identity)) return simplify_identity(c);
  if (c.op->is(Tag::reduction)) return simplify_reduction(c);
  if (c.op == op::broadcast_to) return simplify_broadcast(c);
  if (c.op == op::transpose) return simplify_transpose(c);
  if (c.op == op::slice) return simplify_slice(c);
  if (c.op == op::pad) return simplify_pad(c);
  if (c.op == op::reverse) return simplify_reverse(c);
  if (c.op == op::concat) return simplify_concat(c);
  if (c.op == op::matmul) return simplify_matmul(c);
  return {};
}

}  // namespace fullbore
