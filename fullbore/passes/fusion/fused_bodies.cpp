#include "fullbore/passes/fusion/fused_bodies.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <set>
#include <vector>

#include "fullbore/ir/loop.h"
#include "fullbore/ir/number_everywhere.h"
#include "fullbore/ir/op_def.h"
#include "fullbore/ops/op_handles.h"
#include "fullbore/ops/ops.h"
#include "fullbore/passes/support/rewriter.h"

namespace fullbore {
namespace {

size_t place(Value value) { return static_cast<size_t>(value.id); }

/// What a group becomes: one node that reads `leaves` and makes `results` of the given graph.
struct Unit {
  const Node* node = nullptr;  ///< the first member, or the only one
  std::vector<Value> leaves;
  std::vector<Value> results;
  std::shared_ptr<const Graph> body;  ///< null: the node as it is
};

/// Writes the body of one group.
class BodyWriter {
 public:
  BodyWriter(const Graph& graph, const FusionGroups& groups, const MadeByReaders& made_by_readers,
             int group)
      : graph_(graph),
        groups_(groups),
        made_by_readers_(made_by_readers),
        group_(group),
        builder_("fused"),
        inner_(static_cast<size_t>(graph.value_count())) {}

  Unit write() {
    const std::vector<int> members = needed_members();
    Unit unit{&node(groups_.members(group_).front()), {}, {}, nullptr};
    if (members.empty()) return unit;
    unit.node = &node(members.front());
    for (int member : members) {
      std::vector<Tensor> operands;
      for (Value operand : node(member).inputs) operands.push_back(inner(operand));
      inner_[place(node(member).outputs[0])] = builder_.emit_like(node(member), operands)[0];
    }
    for (int member : members) {
      const Value made = node(member).outputs[0];
      if (!is_result(made)) continue;
      builder_.output(fmt::format("y{}", unit.results.size()), inner_[place(made)]);
      unit.results.push_back(made);
    }
    unit.leaves = leaves_;
    unit.body = std::make_shared<const Graph>(builder_.take());
    return unit;
  }

 private:
  const Node& node(int index) const { return graph_.nodes()[static_cast<size_t>(index)]; }
  bool is_result(Value made) const {
    return !groups_.read_only_by(made, group_) && !made_by_readers_(made);
  }

  // Without those that only make what readers make by themselves.
  std::vector<int> needed_members() const {
    std::set<int> needed;
    for (int member : groups_.members(group_))
      if (is_result(node(member).outputs[0])) need(node(member).outputs[0], needed);
    return {needed.begin(), needed.end()};
  }
  void need(Value value, std::set<int>& needed) const {
    const int maker = graph_.producer(value);
    if (maker < 0) return;
    const bool member = groups_.group(maker) == group_;
    if (member && !needed.insert(maker).second) return;
    if (!member && !is_evaluated_inside(value)) return;
    for (Value operand : node(maker).inputs) need(operand, needed);
  }

  Tensor inner(Value value) {
    Tensor& known = inner_[place(value)];
    if (!known.valid()) known = evaluated_inside(value);
    if (!known.valid()) {
      known = builder_.input(fmt::format("x{}", leaves_.size()), Role::local, graph_.type(value));
      leaves_.push_back(value);
    }
    return known;
  }

  // What makes a value where it is read, if that costs no more than reading it.
  Tensor evaluated_inside(Value value) {
    if (!is_evaluated_inside(value)) return {};
    const Node& maker = *graph_.producer_node(value);
    if (const auto number = number_everywhere(graph_, value)) {
      const Origin origin(builder_, maker);
      return full(builder_, graph_.type(value), *number);
    }
    std::vector<Tensor> operands;
    for (Value operand : maker.inputs) operands.push_back(inner(operand));
    return builder_.emit_like(maker, operands)[0];
  }

  bool is_evaluated_inside(Value value) const {
    const Node* maker = graph_.producer_node(value);
    if (!maker) return false;
    if (groups_.made_within(value, group_) || number_everywhere(graph_, value)) return true;
    if (maker->op == op::iota || maker->op == op::broadcast_to) return true;
    return comes_from_readers(graph_, made_by_readers_, value) || groups_.is_cut_out(value, group_);
  }

  const Graph& graph_;
  const FusionGroups& groups_;
  const MadeByReaders& made_by_readers_;
  int group_;
  GraphBuilder builder_;
  std::vector<Tensor> inner_;  // per value of the graph
  std::vector<Value> leaves_;
};

bool is_fusible(const Graph& graph, const Node& node) {
  return fusion_space(graph, node).has_value();
}

// Nothing is gained from a body around one node that reads all of its operands as they are.
Unit unit_of(const Graph& graph, const FusionGroups& groups, const MadeByReaders& made_by_readers,
             int group) {
  const auto as_it_is = [](const Node& node) {
    return Unit{&node, node.inputs, node.outputs, nullptr};
  };
  const Node& first = graph.nodes()[static_cast<size_t>(group)];
  if (!is_fusible(graph, first)) return as_it_is(first);
  Unit unit = BodyWriter(graph, groups, made_by_readers, group).write();
  return unit.results.empty() || unit.body->nodes().size() == 1 ? as_it_is(*unit.node) : unit;
}

// Per unit: does an output of the graph depend on it? What was evaluated inside groups may have no
// other reader left.
std::vector<bool> live_units(const Graph& graph, const std::vector<Unit>& units) {
  std::vector<bool> needed(static_cast<size_t>(graph.value_count()), false);
  for (const Graph::Output& output : graph.outputs()) needed[place(output.value)] = true;
  std::vector<bool> live(units.size(), false);
  for (size_t i = units.size(); i-- > 0;) {
    live[i] = std::any_of(units[i].results.begin(), units[i].results.end(),
                          [&](Value value) { return needed[place(value)]; });
    if (live[i])
      for (Value leaf : units[i].leaves) needed[place(leaf)] = true;
  }
  return live;
}

}  // namespace

bool comes_from_readers(const Graph& graph, const MadeByReaders& made_by_readers, Value value) {
  if (made_by_readers(value)) return true;
  const Node* maker = graph.producer_node(value);
  const bool moves = maker && (maker->op->is(Tag::identity) || maker->op == op::broadcast_to);
  return moves && comes_from_readers(graph, made_by_readers, maker->inputs[0]);
}

Graph write_groups(const Graph& graph, const FusionGroups& groups,
                   const MadeByReaders& made_by_readers,
                   const std::function<Graph(const Graph&)>& rewrite_loop_body) {
  const MadeByReaders none = [](Value) { return false; };
  std::vector<Unit> units;
  for (int group : groups.order())
    units.push_back(unit_of(graph, groups, made_by_readers ? made_by_readers : none, group));
  const std::vector<bool> live = live_units(graph, units);

  Rewriter rewriter(graph);
  for (size_t i = 0; i < units.size(); ++i) {
    const Unit& unit = units[i];
    if (!live[i]) continue;
    if (!unit.body) {
      const std::shared_ptr<const Graph>& body = unit.node->body;
      rewriter.copy(*unit.node, is_loop(*unit.node)
                                    ? std::make_shared<const Graph>(rewrite_loop_body(*body))
                                    : body);
      continue;
    }
    const Origin origin(rewriter.builder(), *unit.node);
    const std::vector<Tensor> results =
        fused(rewriter.builder(), rewriter.tensors(unit.leaves), unit.body);
    for (size_t k = 0; k < results.size(); ++k) rewriter.map(unit.results[k], results[k].value());
  }
  return rewriter.finish();
}

}  // namespace fullbore
