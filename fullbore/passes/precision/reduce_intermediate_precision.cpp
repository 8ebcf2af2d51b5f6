#include "fullbore/passes/precision/reduce_intermediate_precision.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "fullbore/ir/loop.h"
#include "fullbore/ir/op_def.h"
#include "fullbore/ops/op_handles.h"
#include "fullbore/ops/ops.h"
#include "fullbore/passes/fusion/fusion_space.h"
#include "fullbore/passes/precision/narrowed.h"
#include "fullbore/passes/precision/pinned_values.h"
#include "fullbore/passes/support/rewriter.h"

namespace fullbore {
namespace {

size_t place(Value value) { return static_cast<size_t>(value.id); }

bool is_kernel(const Graph& graph, const Node& node) {
  return node.op == op::fused || fusion_space(graph, node).has_value();
}

// Moves one operand's elements and nothing else.
bool only_moves(const Node& node) {
  return node.inputs.size() == 1 && node.outputs.size() == 1 &&
         (node.op->is(Tag::movement) || node.op->is(Tag::identity));
}

// Which of the body's inputs the value is, or -1.
int input_of(const Graph& body, Value value) {
  for (size_t i = 0; i < body.inputs().size(); ++i)
    if (body.inputs()[i].value == value) return static_cast<int>(i);
  return -1;
}

/// Finds the values to be stored low, and writes the graph in which they are.
class Narrowing {
 public:
  Narrowing(const Graph& graph, const Target& target, PinnedValues kept)
      : graph_(graph),
        target_(target),
        kept_(std::move(kept)),
        readers_(static_cast<size_t>(graph.value_count())),
        narrow_(static_cast<size_t>(graph.value_count()), false) {
    for (size_t i = 0; i < graph.nodes().size(); ++i)
      for (Value operand : graph.nodes()[i].inputs)
        readers_[place(operand)].push_back(static_cast<int>(i));
    for (const Graph::Output& output : graph.outputs()) is_output_.insert(output.value);
    for (const Node& node : graph.nodes())
      if (is_kernel(graph, node)) choose_results(node);
  }

  Graph run() {
    Rewriter rewriter(graph_);
    for (const Node& node : graph_.nodes()) {
      if (touches_narrow(node))
        rewrite(rewriter, node);
      else
        rewriter.copy(node, inner_body(node));
    }
    return rewriter.finish();
  }

 private:
  const Node& node(int index) const { return graph_.nodes()[static_cast<size_t>(index)]; }

  std::shared_ptr<const Graph> inner_body(const Node& node) const {
    if (!is_loop(node)) return node.body;
    return rewritten_body(node, [&](const Graph& body) {
      return Narrowing(body, target_, kept_.of_body(node)).run();
    });
  }

  // Elements of the space that the kernel walks: those of its largest operand, of which slices alone count if nothing
  // else is read, or of its largest result.
  int64_t space_elements(const Node& node) const {
    int64_t most = 0;
    for (Value value : node.outputs) most = std::max(most, graph_.type(value).elements());
    for (size_t i = 0; i < node.inputs.size(); ++i)
      most = std::max(most, node.body ? elements_read(*node.body, node.body->inputs()[i].value)
                                      : graph_.type(node.inputs[i]).elements());
    return most;
  }

  static int64_t elements_read(const Graph& body, Value input) {
    int64_t most = 0;
    for (const Node& node : body.nodes())
      for (Value operand : node.inputs)
        if (operand == input)
          most =
              std::max(most, body.type(node.op == op::slice ? node.outputs[0] : input).elements());
    return most;
  }

  void choose_results(const Node& node) {
    for (Value result : node.outputs) {
      const TensorType& type = graph_.type(result);
      // Numbers of a row each are few, and carry what a row's elements have in common.
      if (type.dtype != DType::f32 || type.elements() != space_elements(node)) continue;
      if (type.elements() < target_.narrow_from || kept_[result] ||
          makes_f32(graph_, result, target_) || !may_be_narrow(result))
        continue;
      mark(result);
    }
  }

  bool may_be_narrow(Value value) const {
    if (is_output_.contains(value) || kept_.is_pinned(value)) return false;
    const std::vector<int>& readers = readers_[place(value)];
    return !readers.empty() && std::all_of(readers.begin(), readers.end(), [&](int reader) {
      if (only_moves(node(reader))) return may_be_narrow(node(reader).outputs[0]);
      return is_kernel(graph_, node(reader));
    });
  }

  void mark(Value value) {
    narrow_[place(value)] = true;
    for (int reader : readers_[place(value)])
      if (only_moves(node(reader))) mark(node(reader).outputs[0]);
  }

  bool touches_narrow(const Node& node) const {
    const auto is_narrow = [&](Value value) { return narrow_[place(value)]; };
    return std::any_of(node.inputs.begin(), node.inputs.end(), is_narrow) ||
           std::any_of(node.outputs.begin(), node.outputs.end(), is_narrow);
  }

  void rewrite(Rewriter& rewriter, const Node& node) {
    const Origin origin(rewriter.builder(), node);
    const std::vector<Tensor> operands = rewriter.tensors(node.inputs);
    if (only_moves(node)) {
      const std::vector<Tensor> results = rewriter.builder().emit_like(node, operands);
      rewriter.map(node.outputs[0], results[0].value());
      return;
    }
    GraphBuilder body("fused");
    std::vector<Tensor> inner = inner_results(body, node, operands);
    std::vector<Value> results;
    for (Tensor result : inner) {
      const bool known = std::find(results.begin(), results.end(), result.value()) != results.end();
      if (known || input_of(body.graph(), result.value()) >= 0) continue;
      body.output(fmt::format("y{}", results.size()), result);
      results.push_back(result.value());
    }
    std::vector<int> as_they_come;  // per result: the operand that it is, or -1
    for (Tensor result : inner) as_they_come.push_back(input_of(body.graph(), result.value()));
    std::vector<Tensor> made;
    if (!results.empty())
      made = fused(rewriter.builder(), operands, std::make_shared<const Graph>(body.take()));
    for (size_t i = 0; i < inner.size(); ++i) {
      const auto at = std::find(results.begin(), results.end(), inner[i].value());
      const Tensor result = as_they_come[i] >= 0 ? operands[static_cast<size_t>(as_they_come[i])]
                                                 : made[static_cast<size_t>(at - results.begin())];
      rewriter.map(node.outputs[i], result.value());
    }
  }

  // The kernel's arithmetic in `body`, f32 as before; results that are to be narrow are cast.
  std::vector<Tensor> inner_results(GraphBuilder& body, const Node& node,
                                    const std::vector<Tensor>& operands) const {
    const Origin origin(body, node);
    std::vector<Tensor> inputs;
    for (size_t i = 0; i < operands.size(); ++i) {
      const Tensor input = body.input(fmt::format("x{}", i), Role::local, operands[i].type());
      inputs.push_back(cast(input, graph_.type(node.inputs[i]).dtype));
    }
    std::vector<Tensor> results = node.op == op::fused ? inline_graph(body, *node.body, inputs)
                                                       : body.emit_like(node, inputs);
    for (size_t i = 0; i < results.size(); ++i) {
      if (!narrow_[place(node.outputs[i])]) continue;
      // In the name of the member that makes it, not of the kernel's first.
      const Node* const maker = body.graph().producer_node(results[i].value());
      const Origin of_maker(body, maker ? *maker : node);
      results[i] = narrowed(results[i], target_.precision);
    }
    return results;
  }

  const Graph& graph_;
  const Target& target_;
  PinnedValues kept_;
  std::vector<std::vector<int>> readers_;
  std::set<Value> is_output_;
  std::vector<bool> narrow_;
};

}  // namespace

Graph reduce_intermediate_precision(const Graph& graph, const Target& target) {
  if (target.precision == DType::f32) return graph;
  return Narrowing(graph, target, PinnedValues(graph)).run();
}

}  // namespace fullbore
