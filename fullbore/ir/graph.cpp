#include "fullbore/ir/graph.h"

#include <fmt/format.h>

#include <iterator>
#include <utility>

#include "fullbore/base/check.h"
#include "fullbore/base/error.h"
#include "fullbore/ir/op_def.h"

namespace fullbore {
namespace {

// A model of a thousand layers has a third of it with its gradient. Each node takes a kilobyte or so, and what passes and
// planner remember of it: beyond, a model that is unrolled would take gigabytes before anybody told it.
constexpr std::ptrdiff_t kMostNodes = 1 << 18;

}  // namespace

std::string_view role_name(Role role) {
  switch (role) {
    case Role::batch: return "batch";
    case Role::parameter: return "parameter";
    case Role::frozen: return "frozen";
    case Role::moment: return "moment";
    case Role::ema: return "ema";
    case Role::control: return "control";
    case Role::recurrent: return "recurrent";
    case Role::derived: return "derived";
    case Role::local: return "local";
  }
  FB_CHECK(false, "role {}", static_cast<int>(role));
}

Value Graph::new_value(TensorType type, int producer) {
  types_.push_back(std::move(type));
  producers_.push_back(producer);
  return {static_cast<int32_t>(types_.size() - 1)};
}

Value Graph::add_input(std::string name, Role role, TensorType type) {
  const Value value = new_value(std::move(type), -1);
  inputs_.push_back({std::move(name), role, value});
  return value;
}

Value Graph::add_input(DerivedWeight derived, TensorType type) {
  const Value value = add_input(derived.name(), Role::derived, std::move(type));
  inputs_.back().derived = std::move(derived);
  return value;
}

Value Graph::add_input_like(const Input& like, TensorType type) {
  const Value value = add_input(like.name, like.role, std::move(type));
  inputs_.back().derived = like.derived;
  return value;
}

const Node& Graph::append(Node node, SourceLoc loc) {
  if (std::ssize(nodes_) >= kMostNodes)
    throw UsageError(fmt::format(
        "graph '{}' has more than {} nodes: parts that repeat are for a loop to repeat, scan() or "
        "while_loop() (fullbore/trace/control.h){}",
        name_, kMostNodes, node.location.empty() ? "" : fmt::format(" ({})", node.location)));
  std::vector<TensorType> input_types;
  input_types.reserve(node.inputs.size());
  for (Value input : node.inputs) {
    FB_CHECK(input.valid() && input.id < value_count(), "operand %{} of {}", input.id,
             node.op->name);
    input_types.push_back(type(input));
  }
  std::vector<TensorType> output_types =
      node.op->infer({*node.op, input_types, node.attributes, node.body.get(), loc});
  for (TensorType& output_type : output_types)
    node.outputs.push_back(new_value(std::move(output_type), static_cast<int>(nodes_.size())));
  nodes_.push_back(std::move(node));
  return nodes_.back();
}

const Node& Graph::add_node(const OpDef& op, std::vector<Value> inputs, Attributes attributes,
                            std::shared_ptr<const Graph> body, SourceLoc loc, std::string scope) {
  return append({&op,
                 std::move(inputs),
                 {},
                 std::move(attributes),
                 std::move(body),
                 loc.text(),
                 std::move(scope)},
                loc);
}

const Node& Graph::add_node_like(const Node& like, const OpDef& op, std::vector<Value> inputs,
                                 Attributes attributes, std::shared_ptr<const Graph> body) {
  return append({&op,
                 std::move(inputs),
                 {},
                 std::move(attributes),
                 std::move(body),
                 like.location,
                 like.scope},
                {});
}

void Graph::add_output(std::string name, Value value, int updates) {
  FB_CHECK(value.valid() && value.id < value_count(), "output '{}'", name);
  outputs_.push_back({std::move(name), value, updates});
}

int Graph::find_input(std::string_view name) const {
  for (size_t i = 0; i < inputs_.size(); ++i)
    if (inputs_[i].name == name) return static_cast<int>(i);
  return -1;
}

int Graph::find_output(std::string_view name) const {
  for (size_t i = 0; i < outputs_.size(); ++i)
    if (outputs_[i].name == name) return static_cast<int>(i);
  return -1;
}

std::vector<int> Graph::use_counts() const {
  std::vector<int> counts(types_.size(), 0);
  for (const Node& node : nodes_)
    for (Value input : node.inputs) ++counts[static_cast<size_t>(input.id)];
  for (const Output& output : outputs_) ++counts[static_cast<size_t>(output.value.id)];
  return counts;
}

}  // namespace fullbore
