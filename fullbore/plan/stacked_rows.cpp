#include "fullbore/plan/stacked_rows.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "fullbore/ir/loop.h"
#include "fullbore/ir/op_def.h"
#include "fullbore/ops/counted_rows.h"

namespace fullbore {
namespace {

/// The loops that have stacked a value, outermost first, by their nodes.
using Axes = std::vector<const Node*>;

/// A value, or a stack of values, that is the number of iterations made.
struct Count {
  Value value;
  Axes axes;
};
using Counts = std::vector<Count>;

Value root_of(const Graph& graph, Value value) {
  for (const Node* node = graph.producer_node(value); node && node->op->is(Tag::identity);
       node = graph.producer_node(value))
    value = node->inputs[0];
  return value;
}

// Rows of x that a gather is told of are those that were made (GatherSumCounts).
bool gathers_rows_there(const Node& node, size_t operand) {
  return operand == 0 && has_counted_rows(node);
}

/// Do such gathers alone read a value, whole, through views and what loops carry on?
class GatheredAlone {
 public:
  bool check(const BodyScope& scope, Value value) {
    if (!seen_.emplace(&scope.graph, value).second) return true;  // on the way around a loop
    const Graph& graph = scope.graph;
    for (size_t i = 0; i < graph.outputs().size(); ++i)
      if (graph.outputs()[i].value == value && !check_output(scope, i)) return false;
    for (size_t i = 0; i < graph.nodes().size(); ++i) {
      const Node& node = graph.nodes()[i];
      for (size_t k = 0; k < node.inputs.size(); ++k) {
        if (node.inputs[k] != value || gathers_rows_there(node, k)) continue;
        if (is_loop(node)) {
          if (!check_carried(scope, static_cast<int>(i), k)) return false;
        } else if (k > 0 || !node.op->is(Tag::identity) || !check(scope, node.outputs[0])) {
          return false;
        }
      }
    }
    return true;
  }

 private:
  // What a body hands to the next iteration, and in the end to who reads the loop.
  bool check_output(const BodyScope& scope, size_t output) {
    if (!scope.around) return false;
    const Node& node = scope.around->graph.nodes()[static_cast<size_t>(scope.node)];
    if (!is_loop(node) || output >= static_cast<size_t>(LoopShape(node).carried)) return false;
    return check(scope, scope.graph.inputs()[output + 1].value) &&
           check(*scope.around, node.outputs[output]);
  }
  bool check_carried(const BodyScope& scope, int index, size_t operand) {
    const Node& node = scope.graph.nodes()[static_cast<size_t>(index)];
    const LoopShape shape(node);
    const int place = static_cast<int>(operand) - shape.first_carried();
    if (place < 0 || place >= shape.carried) return false;
    const BodyScope body{*node.body, &scope, index};
    const auto carried = static_cast<size_t>(place);
    return check(body, node.body->inputs()[carried + 1].value) &&
           check(scope, node.outputs[carried]);
  }

  std::set<std::pair<const Graph*, Value>> seen_;
};

// Equal, and row by row where they are stacks.
bool is_same(const Graph& graph, Value value, const Count& count) {
  if (root_of(graph, value) != root_of(graph, count.value)) return false;
  return count.axes.empty() || graph.type(value) == graph.type(count.value);
}

Axes without_first(const Axes& axes) { return {axes.begin() + 1, axes.end()}; }

Axes with_first(const Node* loop, const Axes& axes) {
  Axes result = {loop};
  result.insert(result.end(), axes.begin(), axes.end());
  return result;
}

// Are the axes that were stacked, and the rows below them, those of the operand?
bool keeps_rows(const Graph& graph, const Node& view, size_t axes) {
  const Shape& from = graph.type(view.inputs[0]).shape;
  const Shape& to = graph.type(view.outputs[0]).shape;
  for (int i = 0; i <= static_cast<int>(axes); ++i)
    if (i >= from.rank() || i >= to.rank() || from[i] != to[i]) return false;
  return true;
}

bool reads_beyond(const BodyScope& scope, Value stack, const Axes& axes, const Counts& counts);

// The counts that a loop's body finds among its inputs. `sliced_axis`: of the stack that is sliced; null if it is captured.
Counts counts_inside(const Graph& graph, const Node& node, const LoopShape& shape,
                     const Node* sliced_axis, const Counts& counts) {
  Counts inside;
  for (const Count& count : counts)
    for (int i = shape.first_sliced(); i < static_cast<int>(node.inputs.size()); ++i) {
      const bool sliced = i < shape.first_captured();
      if (sliced && (count.axes.empty() || count.axes[0] != sliced_axis)) continue;
      if (!is_same(graph, node.inputs[static_cast<size_t>(i)], count)) continue;
      const auto input = static_cast<size_t>(i - shape.first_carried() + 1);
      inside.push_back(
          {node.body->inputs()[input].value, sliced ? without_first(count.axes) : count.axes});
    }
  return inside;
}

bool loop_reads_beyond(const BodyScope& scope, int index, size_t operand, const Axes& axes,
                       const Counts& counts) {
  const Node& node = scope.graph.nodes()[static_cast<size_t>(index)];
  const LoopShape shape(node);
  const int place = static_cast<int>(operand);
  if (place < shape.first_sliced()) return true;  // carried on whole
  const bool sliced = place < shape.first_captured();
  if (sliced && axes.empty())
    return !shape.counted || std::ranges::none_of(counts, [&](const Count& count) {
      return count.axes.empty() && is_same(scope.graph, node.inputs[0], count);
    });
  const BodyScope body{*node.body, &scope, index};
  const Value input =
      node.body->inputs()[operand + 1 - static_cast<size_t>(shape.first_carried())].value;
  return reads_beyond(body, input, sliced ? without_first(axes) : axes,
                      counts_inside(scope.graph, node, shape, sliced ? axes[0] : nullptr, counts));
}

// Of what a body stacks: who reads the stack of all iterations?
bool stack_is_read_beyond(const BodyScope& scope, size_t output, const Axes& axes,
                          const Counts& counts) {
  if (!scope.around) return true;
  const Graph& graph = scope.graph;
  const Node& node = scope.around->graph.nodes()[static_cast<size_t>(scope.node)];
  if (!is_loop(node)) return true;
  const LoopShape shape(node);
  const auto first = static_cast<size_t>(shape.carried);
  const size_t end = first + static_cast<size_t>(shape.stacked);
  if (output < first || output >= end) return true;
  Counts outside;
  for (const Count& count : counts) {
    for (size_t i = first; i < end; ++i)
      if (is_same(graph, graph.outputs()[i].value, count))
        outside.push_back({node.outputs[i], with_first(&node, count.axes)});
    for (int i = shape.first_captured(); i < static_cast<int>(node.inputs.size()); ++i) {
      const auto input = static_cast<size_t>(i - shape.first_carried() + 1);
      if (is_same(graph, graph.inputs()[input].value, count))
        outside.push_back({node.inputs[static_cast<size_t>(i)], count.axes});
    }
  }
  return reads_beyond(*scope.around, node.outputs[output], with_first(&node, axes), outside);
}

// `stack`: rows by the iterations of the loop in question, below those of the loops of `axes`.
bool reads_beyond(const BodyScope& scope, Value stack, const Axes& axes, const Counts& counts) {
  const Graph& graph = scope.graph;
  for (size_t i = 0; i < graph.outputs().size(); ++i)
    if (graph.outputs()[i].value == stack && stack_is_read_beyond(scope, i, axes, counts))
      return true;
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const Node& node = graph.nodes()[i];
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      if (node.inputs[k] != stack) continue;
      if (is_loop(node)) {
        if (loop_reads_beyond(scope, static_cast<int>(i), k, axes, counts)) return true;
      } else if (k > 0 || !node.op->is(Tag::identity) || !keeps_rows(graph, node, axes.size()) ||
                 reads_beyond(scope, node.outputs[0], axes, counts)) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace

bool reads_rows_not_made(const BodyScope& scope, int node, int output) {
  const Node& loop = scope.graph.nodes()[static_cast<size_t>(node)];
  const LoopShape shape(loop);
  if (shape.iterations == 0 || !(shape.until || shape.counted)) return false;
  Counts made;
  if (!shape.until)
    made.push_back({loop.inputs[0], {}});
  else if (!shape.reverse)  // else the rows made are the last ones, not the first
    made.push_back({loop.outputs.back(), {}});
  const Value stack = loop.outputs[static_cast<size_t>(output)];
  return !GatheredAlone().check(scope, stack) && reads_beyond(scope, stack, {}, made);
}

}  // namespace fullbore
