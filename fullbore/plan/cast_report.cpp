#include "fullbore/plan/cast_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "fullbore/base/text.h"
#include "fullbore/ir/fused_matmul.h"
#include "fullbore/ir/loop.h"
#include "fullbore/ir/op_def.h"
#include "fullbore/ops/op_handles.h"
#include "fullbore/passes/gemm/derived_weights.h"

namespace fullbore {
namespace {

bool changes_precision(const Graph& graph, const Node& node) {
  return node.op == op::cast && is_floating(graph.type(node.inputs[0]).dtype) &&
         is_floating(graph.type(node.outputs[0]).dtype);
}

std::string place_of(const Node& node) {
  return fmt::format("{}{}{}{}", node.op->name, node.scope.empty() ? "" : " ", node.scope,
                     node.location.empty() ? "" : fmt::format(" ({})", node.location));
}

/// The casts of one graph: a step, or a loop's body.
class Casts {
 public:
  Casts(const Graph& graph, std::vector<CastUse>& uses) : graph_(graph), uses_(uses) {
    readers_.resize(static_cast<size_t>(graph.value_count()));
    for (const Node& node : graph.nodes())
      for (Value input : node.inputs) readers_[place(input)].push_back(&node);
  }

  void collect() {
    collect_copies();
    for (const Node& node : graph_.nodes()) {
      if (is_loop(node)) {
        Casts(*node.body, uses_).collect();
      } else if (node.body) {
        collect_kernel(node);
      } else if (changes_precision(graph_, node)) {
        uses_.push_back({graph_.type(node.inputs[0]), graph_.type(node.outputs[0]),
                         name_of(node.inputs[0]), reason(node.outputs[0]), true});
      }
    }
  }

 private:
  static size_t place(Value value) { return static_cast<size_t>(value.id); }

  std::string name_of(Value value) const {
    if (const Node* node = graph_.producer_node(value)) {
      if (node->op->is(Tag::identity)) return name_of(node->inputs[0]);
      return place_of(*node);
    }
    for (const Graph::Input& input : graph_.inputs())
      if (input.value == value) return fmt::format("{} {}", role_name(input.role), input.name);
    return "a value";
  }

  // Who reads the value, through what only renames it.
  void collect_readers(Value value, std::vector<const Node*>& found) const {
    for (const Node* reader : readers_[place(value)]) {
      if (reader->op->is(Tag::identity))
        collect_readers(reader->outputs[0], found);
      else
        found.push_back(reader);
    }
  }

  // Is the value, or what renames it, an operand of the matmul that the node is or begins with?
  bool multiplies(const Node& node, Value value) const {
    if (node.op->is(Tag::contraction)) return true;
    const Node* const matmul = fused_matmul(node);
    if (!matmul) return false;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const Value inner = node.body->inputs()[i].value;
      if (root_of(node.inputs[i]) == root_of(value) &&
          std::find(matmul->inputs.begin(), matmul->inputs.end(), inner) != matmul->inputs.end())
        return true;
    }
    return false;
  }

  Value root_of(Value value) const {
    const Node* const maker = graph_.producer_node(value);
    return maker && maker->op->is(Tag::identity) ? root_of(maker->inputs[0]) : value;
  }

  // The copy of a parameter that the value becomes, or none.
  const Graph::Input* copy_updated_by(Value value) const {
    for (const Graph::Output& output : graph_.outputs())
      if (output.value == value && output.updates >= 0)
        if (const auto& input = graph_.inputs()[static_cast<size_t>(output.updates)];
            input.role == Role::derived)
          return &input;
    return nullptr;
  }

  // Copies that the graph only reads: the runtime makes them.
  void collect_copies() {
    for (size_t i = 0; i < graph_.inputs().size(); ++i) {
      const Graph::Input& input = graph_.inputs()[i];
      if (input.role != Role::derived || update_of(graph_, static_cast<int>(i))) continue;
      const std::optional<DerivedWeight>& copy = input.derived;
      const int parameter = graph_.find_input(copy->parameter);
      if (parameter < 0) continue;
      const Value from = graph_.inputs()[static_cast<size_t>(parameter)].value;
      uses_.push_back({graph_.type(from),
                       {copy->dtype.value_or(graph_.type(from).dtype), {}},
                       name_of(from),
                       "kept for all runs: " + reason(input.value),
                       false});
    }
  }

  std::string reason_of_copy(const Graph::Input& copy) const {
    return "the next run: " + reason(copy.value);
  }

  std::string reason(Value value) const {
    if (const Graph::Input* const copy = copy_updated_by(value)) return reason_of_copy(*copy);
    std::vector<const Node*> found;
    collect_readers(value, found);
    for (const Node* const reader : found)  // which packs the copy
      if (const Graph::Input* const copy = copy_updated_by(reader->outputs[0]))
        return reason_of_copy(*copy);
    const auto matmul = std::find_if(found.begin(), found.end(),
                                     [&](const Node* node) { return multiplies(*node, value); });
    if (matmul != found.end())
      return fmt::format("operand of {}{}", place_of(**matmul),
                         found.size() > 1 ? fmt::format(" and {} more", found.size() - 1) : "");
    if (!found.empty()) return fmt::format("read by {}", place_of(*found.front()));
    return "a result";
  }

  // Where a kernel stores low what it has made in f32, or widens what it reads.
  void collect_kernel(const Node& node) {
    const Graph& body = *node.body;
    for (const Node& inner : body.nodes()) {
      if (!changes_precision(body, inner)) continue;
      CastUse use{body.type(inner.inputs[0]), body.type(inner.outputs[0]), place_of(node), "",
                  false};
      use.reason = is_low_precision(use.from.dtype) ? "arithmetic is f32" : "within the kernel";
      for (size_t i = 0; i < body.outputs().size(); ++i)
        if (body.outputs()[i].value == inner.outputs[0])
          use.reason = "stored for: " + reason(node.outputs[i]);
      uses_.push_back(std::move(use));
    }
  }

  const Graph& graph_;
  std::vector<CastUse>& uses_;
  std::vector<std::vector<const Node*>> readers_;  // per value
};

}  // namespace

std::vector<CastUse> casts_of(const Graph& graph) {
  std::vector<CastUse> uses;
  Casts(graph, uses).collect();
  return uses;
}

std::string casts_text(const Graph& graph) {
  const std::vector<CastUse> uses = casts_of(graph);
  std::string text;
  int64_t launches = 0;
  double bytes = 0;
  for (const CastUse& use : uses) {
    text += fmt::format("{} -> {}  {} {}: {}\n", use.from.text(), dtype_name(use.to.dtype),
                        use.in_memory ? "launch" : "in", use.what, use.reason);
    if (!use.in_memory) continue;
    ++launches;
    bytes += static_cast<double>(use.from.bytes() + use.to.bytes());
  }
  return text + fmt::format("{} changes of precision, of which {} are launches, {} moved\n",
                            uses.size(), launches, bytes_text(bytes));
}

}  // namespace fullbore
