#include "fullbore/passes/fuse.h"

#include <fmt/format.h>

#include <algorithm>

#include "fullbore/base/check.h"
#include "fullbore/ir/loop.h"
#include "fullbore/ir/op_def.h"
#include "fullbore/ops/ops.h"
#include "fullbore/passes/fusion_groups.h"
#include "fullbore/passes/remove_dead.h"
#include "fullbore/passes/rewriter.h"
#include "fullbore/passes/simplify_rules.h"

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
  BodyWriter(const Graph& graph, const FusionGroups& groups, int group)
      : graph_(graph),
        groups_(groups),
        group_(group),
        builder_("fused"),
        inner_(static_cast<size_t>(graph.value_count())) {}

  Unit write() {
    const std::vector<int>& members = groups_.members(group_);
    Unit unit{&node(members.front()), {}, {}, nullptr};
    for (int member : members) {
      std::vector<Tensor> operands;
      for (Value operand : node(member).inputs) operands.push_back(inner(operand));
      inner_[place(node(member).outputs[0])] = builder_.emit_like(node(member), operands)[0];
    }
    for (int member : members) {
      const Value made = node(member).outputs[0];
      if (groups_.read_only_by(made, group_)) continue;
      builder_.output(fmt::format("y{}", unit.results.size()), inner_[place(made)]);
      unit.results.push_back(made);
    }
    unit.leaves = leaves_;
    unit.body = std::make_shared<const Graph>(builder_.take());
    return unit;
  }

 private:
  const Node& node(int index) const { return graph_.nodes()[static_cast<size_t>(index)]; }

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
    const Node* maker = graph_.producer_node(value);
    if (!maker) return {};
    const auto again = [&](std::initializer_list<Tensor> operands) {
      return builder_.emit_like(*maker, std::span(operands.begin(), operands.size()))[0];
    };
    if (groups_.made_within(value, group_)) return again({inner(maker->inputs[0])});
    if (const auto number = number_everywhere(graph_, value)) {
      const Origin origin(builder_, *maker);
      return full(builder_, graph_.type(value), *number);
    }
    if (maker->op->name == "iota") return again({});
    if (maker->op->name == "broadcast_to") return again({inner(maker->inputs[0])});
    return is_cut_out(maker) ? again({inner(maker->inputs[0])}) : Tensor{};
  }

  // Does a slice or pad make the value that kernels alone read? Where neighbours would be read one by one it is made once
  // for all of them: of every other element, and behind a reshape that does not keep the last axis whole.
  bool is_cut_out(const Node* maker) const {
    const Node* cut = maker;
    while (cut && cut->op->is(Tag::identity)) cut = graph_.producer_node(cut->inputs[0]);
    if (!cut || (cut->op->name != "slice" && cut->op->name != "pad")) return false;
    if (cut == maker && groups_.read_only_by(cut->outputs[0], group_)) return true;
    const Shape& shape = graph_.type(cut->outputs[0]).shape;
    const bool of_last = cut->attributes.get<int64_t>("axis") == shape.rank() - 1;
    if (of_last && cut->op->name == "slice" && cut->attributes.get<int64_t>("stride") != 1)
      return false;
    if (cut != maker && (of_last || !fits(groups_.space(group_), shape))) return false;
    return groups_.read_by_groups_alone(cut->outputs[0]);
  }

  const Graph& graph_;
  const FusionGroups& groups_;
  int group_;
  GraphBuilder builder_;
  std::vector<Tensor> inner_;  // per value of the graph
  std::vector<Value> leaves_;
};

bool is_fusible(const Graph& graph, const Node& node) {
  return fusion_space(graph, node).has_value();
}

// Nothing is gained from a body around one node that reads all of its operands as they are.
Unit unit_of(const Graph& graph, const FusionGroups& groups, int group) {
  const Node& first = graph.nodes()[static_cast<size_t>(group)];
  const Unit as_it_is{&first, first.inputs, first.outputs, nullptr};
  if (!is_fusible(graph, first)) return as_it_is;
  Unit unit = BodyWriter(graph, groups, group).write();
  return unit.results.empty() || unit.body->nodes().size() == 1 ? as_it_is : unit;
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

Graph fuse_live(const Graph& graph) {
  const FusionGroups groups(graph);
  std::vector<Unit> units;
  for (int group : groups.order()) units.push_back(unit_of(graph, groups, group));
  const std::vector<bool> live = live_units(graph, units);

  Rewriter rewriter(graph);
  for (size_t i = 0; i < units.size(); ++i) {
    const Unit& unit = units[i];
    if (!live[i]) continue;
    if (!unit.body) {
      const std::shared_ptr<const Graph>& body = unit.node->body;
      rewriter.copy(*unit.node,
                    is_loop(*unit.node) ? std::make_shared<const Graph>(fuse_live(*body)) : body);
      continue;
    }
    const Origin origin(rewriter.builder(), *unit.node);
    const std::vector<Tensor> results =
        fused(rewriter.builder(), rewriter.tensors(unit.leaves), unit.body);
    for (size_t k = 0; k < results.size(); ++k) rewriter.map(unit.results[k], results[k].value());
  }
  return rewriter.finish();
}

}  // namespace

// A dead reader would keep values from vanishing into groups.
Graph fuse(const Graph& graph, const Target& target) {
  return fuse_live(remove_dead(graph, target));
}

}  // namespace fullbore
