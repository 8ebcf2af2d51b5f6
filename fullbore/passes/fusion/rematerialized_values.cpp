#include "fullbore/passes/fusion/rematerialized_values.h"

#include <algorithm>

#include "fullbore/ir/number_everywhere.h"
#include "fullbore/ir/op_def.h"
#include "fullbore/ops/op_handles.h"
#include "fullbore/passes/fusion/epilogue_rules.h"

namespace fullbore {
namespace {

// What may be read instead of a value: as much, and a few numbers of rows or columns.
constexpr double kMostBytes = 1.125;

// Values that one kernel rematerializes, and that it reads: both are limits of its size, not of what pays.
constexpr size_t kMostRematerialized = 24, kMostValues = 48;

bool is_cheap(const Node& node) {
  if (!node.op->is(Tag::elementwise) || node.outputs.size() != 1) return false;
  switch (node.op->scalar) {
    case ScalarOp::neg:
    case ScalarOp::abs:
    case ScalarOp::cast:
    case ScalarOp::add:
    case ScalarOp::sub:
    case ScalarOp::mul:
    case ScalarOp::maximum:
    case ScalarOp::minimum:
    case ScalarOp::equal:
    case ScalarOp::not_equal:
    case ScalarOp::less:
    case ScalarOp::less_equal:
    case ScalarOp::logical_not:
    case ScalarOp::logical_and:
    case ScalarOp::logical_or:
    case ScalarOp::select: return true;
    default: return false;
  }
}

bool is_sum(const Node& node) {
  return node.op->scalar == ScalarOp::add || node.op->scalar == ScalarOp::sub;
}

}  // namespace

RematerializedValues::RematerializedValues(const Graph& graph, const FusionGroups& groups,
                                           const Target& target)
    : graph_(graph), groups_(groups), low_precision_(target.precision != DType::f32) {
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const int group = groups.group(static_cast<int>(i));
    if (groups.is_fused(group) && is_cheap(graph.nodes()[i])) consider(graph.nodes()[i], group);
  }
}

bool RematerializedValues::contains(Value value) const {
  if (rematerialized_.contains(value)) return true;
  const int maker = graph_.producer(value);
  if (maker < 0 || !is_cheap(graph_.nodes()[static_cast<size_t>(maker)])) return false;
  const int group = groups_.group(maker);
  return groups_.is_fused(group) && groups_.read_only_by(value, group);
}

bool RematerializedValues::contains_source_of(Value value) const {
  const Node* maker = graph_.producer_node(value);
  if (contains(value) || !maker) return contains(value);
  const bool moves = maker->op->is(Tag::identity) || maker->op == op::broadcast_to;
  return moves && contains_source_of(maker->inputs[0]);
}

// Operands come before what is made of them, so it is known of them whether they reach memory.
void RematerializedValues::consider(const Node& node, int group) {
  const Value value = node.outputs[0];
  std::optional<std::set<int>> readers = groups_.reading_groups(value);
  if (!readers || readers->empty() || *readers == std::set{group}) return;
  readers->erase(group);
  std::vector<Reading> before;
  for (int reader : *readers) {
    std::optional<Reading> now = reading(reader);
    if (!now) return;
    before.push_back(std::move(*now));
  }
  rematerialized_.insert(value);
  size_t i = 0;
  for (int reader : *readers) {
    const std::optional<Reading> after = reading(reader);
    if (!after || after->rounded || after->rematerialized.size() > kMostRematerialized ||
        after->values.size() > kMostValues ||
        new_bytes(before[i++], *after) > kMostBytes * bytes(value)) {
      rematerialized_.erase(value);
      return;
    }
  }
}

std::optional<RematerializedValues::Reading> RematerializedValues::reading(int group) const {
  Reading result;
  FusionSpace space = groups_.space(group);
  for (int member : groups_.members(group))
    for (Value operand : graph_.nodes()[static_cast<size_t>(member)].inputs)
      if (!groups_.made_within(operand, group) && !collect(operand, group, false, space, result))
        return std::nullopt;
  return result;
}

bool RematerializedValues::collect(Value operand, int group, bool for_sum, FusionSpace& space,
                                   Reading& reading) const {
  if (number_everywhere(graph_, operand)) return true;
  const Node* maker = graph_.producer_node(operand);
  const auto operands = [&](bool of_sum) {
    return std::ranges::all_of(
        maker->inputs, [&](Value input) { return collect(input, group, of_sum, space, reading); });
  };
  if (maker && maker->op == op::iota) return true;
  if (maker && maker->op == op::broadcast_to) return operands(for_sum);
  if (groups_.made_within(operand, group)) return admit(space, graph_, operand);
  if (maker && maker->op->is(Tag::identity) && contains_source_of(operand))
    return admit(space, graph_, operand) && operands(for_sum);
  if (contains(operand)) {
    reading.rematerialized.insert(operand);
    return operands(for_sum || is_sum(*maker));
  }
  if (groups_.is_cut_out(operand, group)) return operands(for_sum);
  const Value value = renamed_from(graph_, operand);
  const int node = graph_.producer(value);
  const bool of_group = node >= 0 && groups_.is_fused(groups_.group(node));
  if (of_group && groups_.read_only_by(value, groups_.group(node))) return false;
  if (for_sum && low_precision_ && of_group && graph_.type(value).dtype == DType::f32)
    reading.rounded = true;
  reading.values.insert(value);
  return true;
}

// As memory will keep it.
double RematerializedValues::bytes(Value value) const {
  const TensorType& type = graph_.type(value);
  const bool narrowed = low_precision_ && type.dtype == DType::f32;
  return static_cast<double>(type.bytes()) / (narrowed ? 2 : 1);
}

double RematerializedValues::new_bytes(const Reading& before, const Reading& after) const {
  double sum = 0;
  for (Value value : after.values)
    if (!before.values.contains(value)) sum += bytes(value);
  return sum;
}

}  // namespace fullbore
