#include "tests/support/copies.h"

#include <algorithm>

#include "fullbore/runtime/compare_nodes.h"
#include "tests/support/gradcheck.h"

namespace fullbore {

namespace {

bool is_copy(const Graph& graph, int input) {
  return input >= 0 && graph.inputs()[static_cast<size_t>(input)].role == Role::derived;
}

}  // namespace

std::vector<Literal> with_copies(const Graph& graph, const std::vector<Literal>& inputs) {
  std::vector<Literal> all = inputs;
  for (Literal& copy : copies_of(graph, inputs)) all.push_back(std::move(copy));
  return all;
}

std::vector<Literal> without_copies(const Graph& graph, const std::vector<Literal>& outputs) {
  std::vector<Literal> others;
  for (size_t i = 0; i < outputs.size(); ++i)
    if (!is_copy(graph, graph.outputs()[i].updates)) others.push_back(outputs[i]);
  return others;
}

std::string check_copies(const Graph& graph, const std::vector<Literal>& inputs,
                         const std::vector<Literal>& outputs) {
  std::vector<Literal> next = inputs;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const int updates = graph.outputs()[i].updates;
    if (updates >= 0 && !is_copy(graph, updates)) next[static_cast<size_t>(updates)] = outputs[i];
  }
  const std::vector<Literal> expected = with_copies(graph, next);
  const std::vector<Literal> before = with_copies(graph, inputs);
  for (size_t i = inputs.size(); i < expected.size(); ++i) {
    const auto update =
        std::ranges::find(graph.outputs(), static_cast<int>(i), &Graph::Output::updates);
    if (update == graph.outputs().end()) {
      if (!compare_literals({before[i]}, {expected[i]}, 0).empty())
        return "'" + graph.inputs()[i].name + "' is not updated";
      continue;
    }
    const std::string problem = compare_literals(
        {expected[i]}, {outputs[static_cast<size_t>(update - graph.outputs().begin())]}, 1e-9, 1);
    if (!problem.empty()) return "'" + graph.inputs()[i].name + "': " + problem;
  }
  return "";
}

}  // namespace fullbore
