#include "fullbore/passes/canonicalize/dead_code_elimination.h"

#include <algorithm>

#include "fullbore/ir/loop.h"
#include "fullbore/ir/op_def.h"
#include "fullbore/passes/support/rewriter.h"

namespace fullbore {
namespace {

size_t place(Value value) { return static_cast<size_t>(value.id); }

/// What is needed of a loop, given which of its results are read.
struct LoopNeeds {
  std::vector<bool> results;      ///< per output of the body
  std::vector<bool> body_inputs;  ///< per input of the body
};

// Per value of the graph: does one of `outputs` depend on it? Loops are seen through: a result that
// does not need an operand does not keep it alive.
std::vector<bool> live_values(const Graph& graph, const std::vector<bool>& outputs);

LoopNeeds needs_of(const Node& node, std::vector<bool> results) {
  const LoopShape shape(node);
  const Graph& body = *node.body;
  if (shape.until) results.back() = true;  // decides how many iterations there are
  while (true) {
    const std::vector<bool> live = live_values(body, results);
    LoopNeeds needs{results, {}};
    for (const Graph::Input& input : body.inputs())
      needs.body_inputs.push_back(live[place(input.value)]);
    // A carried value that is read at all must be computed for the next iteration.
    for (size_t c = 0; c < static_cast<size_t>(shape.carried); ++c)
      if (needs.body_inputs[1 + c] || results[c]) results[c] = needs.body_inputs[1 + c] = true;
    if (results == needs.results) return needs;
  }
}

// Operand `i` of a loop feeds this input of its body; the count feeds none.
bool operand_needed(const LoopShape& shape, const LoopNeeds& needs, size_t i) {
  if (shape.counted && i == 0) return true;
  return needs.body_inputs[i + 1 - static_cast<size_t>(shape.first_carried())];
}

std::vector<bool> live_values(const Graph& graph, const std::vector<bool>& outputs) {
  std::vector<bool> live(static_cast<size_t>(graph.value_count()), false);
  for (size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i]) live[place(graph.outputs()[i].value)] = true;
  for (auto node = graph.nodes().rbegin(); node != graph.nodes().rend(); ++node) {
    std::vector<bool> read;
    for (Value output : node->outputs) read.push_back(live[place(output)]);
    if (std::find(read.begin(), read.end(), true) == read.end()) continue;
    if (!is_loop(*node)) {
      for (Value input : node->inputs) live[place(input)] = true;
      continue;
    }
    const LoopShape shape(*node);
    const LoopNeeds needs = needs_of(*node, std::move(read));
    for (size_t i = 0; i < node->inputs.size(); ++i)
      if (operand_needed(shape, needs, i)) live[place(node->inputs[i])] = true;
  }
  return live;
}

// The graph with the inputs and outputs that are to be kept, and only what those outputs need.
Graph pruned(const Graph& graph, const std::vector<bool>& inputs, const std::vector<bool>& outputs);

std::vector<bool> all(size_t count) { return std::vector<bool>(count, true); }

/// Copies the live nodes of one graph.
class Pruning {
 public:
  Pruning(const Graph& graph, const std::vector<bool>& inputs, const std::vector<bool>& outputs)
      : graph_(graph),
        outputs_(outputs),
        live_(live_values(graph, outputs)),
        builder_(graph.name()),
        values_(live_.size()) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Graph::Input& input = graph.inputs()[i];
      if (inputs[i]) tensor(input.value) = builder_.input_like(input, graph.type(input.value));
    }
  }

  Graph run() {
    for (const Node& node : graph_.nodes()) {
      const std::vector<bool> read = read_results(node);
      if (std::find(read.begin(), read.end(), true) == read.end()) continue;
      if (is_loop(node))
        copy_loop(node, read);
      else
        copy(node);
    }
    for (size_t i = 0; i < outputs_.size(); ++i) {
      const Graph::Output& output = graph_.outputs()[i];
      if (outputs_[i]) builder_.output(output.name, tensor(output.value), output.updates);
    }
    return builder_.take();
  }

 private:
  Tensor& tensor(Value value) { return values_[place(value)]; }

  std::vector<bool> read_results(const Node& node) const {
    std::vector<bool> read;
    for (Value output : node.outputs) read.push_back(live_[place(output)]);
    return read;
  }

  void copy(const Node& node) {
    Node changed = node;
    changed.body = rewritten_body(node, [](const Graph& body) {
      return pruned(body, all(body.inputs().size()), all(body.outputs().size()));
    });
    std::vector<Tensor> operands;
    for (Value input : node.inputs) operands.push_back(tensor(input));
    const std::vector<Tensor> results = builder_.emit_like(changed, operands);
    for (size_t i = 0; i < results.size(); ++i) tensor(node.outputs[i]) = results[i];
  }

  void copy_loop(const Node& node, const std::vector<bool>& read) {
    const LoopShape shape(node);
    LoopNeeds needs = needs_of(node, read);
    needs.body_inputs[0] = true;  // the index is the loop's own
    const auto count = [&](int first, int number) {
      const auto begin = needs.body_inputs.begin() + first;
      return static_cast<int64_t>(std::count(begin, begin + number, true));
    };
    Node changed = node;
    changed.attributes.set("carried", count(1, shape.carried));
    changed.attributes.set("sliced", count(1 + shape.carried, shape.sliced));
    changed.body =
        std::make_shared<const Graph>(pruned(*node.body, needs.body_inputs, needs.results));
    std::vector<Tensor> operands;
    for (size_t i = 0; i < node.inputs.size(); ++i)
      if (operand_needed(shape, needs, i)) operands.push_back(tensor(node.inputs[i]));
    const std::vector<Tensor> results = builder_.emit_like(changed, operands);
    size_t next = 0;
    for (size_t i = 0; i < node.outputs.size(); ++i)
      if (needs.results[i]) tensor(node.outputs[i]) = results[next++];
  }

  const Graph& graph_;
  const std::vector<bool>& outputs_;
  const std::vector<bool> live_;
  GraphBuilder builder_;
  std::vector<Tensor> values_;
};

Graph pruned(const Graph& graph, const std::vector<bool>& inputs,
             const std::vector<bool>& outputs) {
  return Pruning(graph, inputs, outputs).run();
}

}  // namespace

Graph dead_code_elimination(const Graph& graph, const Target&) {
  return pruned(graph, all(graph.inputs().size()), all(graph.outputs().size()));
}

}  // namespace fullbore
