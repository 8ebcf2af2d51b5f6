#include "fullbore/ir/print.h"

#include <fmt/format.h>

#include "fullbore/base/hash.h"
#include "fullbore/ir/op_def.h"

namespace fullbore {
namespace {

class Printer {
 public:
  Printer(const Graph& graph, bool origins) : graph_(graph), origins_(origins) {
    // Values are numbered in the order of the text, whenever their inputs were added, so that
    // reading the text back gives the same numbers.
    names_.resize(static_cast<size_t>(graph.value_count()));
    int next = 0;
    for (const Graph::Input& input : graph.inputs()) name(input.value) = next++;
    for (const Node& node : graph.nodes())
      for (Value output : node.outputs) name(output) = next++;
  }

  std::string graph(int depth) {
    indent_ = std::string(static_cast<size_t>(depth) * 2, ' ');
    std::string text = fmt::format("{}graph {} {{\n", indent_, quoted_text(graph_.name()));
    for (const Graph::Input& input : graph_.inputs())
      text += fmt::format("{}  %{} = input {} {}{} : {}\n", indent_, name(input.value),
                          quoted_text(input.name), role_name(input.role), origin(input),
                          graph_.type(input.value).text());
    for (const Node& node : graph_.nodes()) text += indent_ + "  " + this->node(node, depth) + "\n";
    for (const Graph::Output& output : graph_.outputs()) {
      text +=
          fmt::format("{}  output {} %{}", indent_, quoted_text(output.name), name(output.value));
      if (output.updates >= 0) text += fmt::format(" updates {}", output.updates);
      text += "\n";
    }
    return text + indent_ + "}";
  }

  std::string node(const Node& node, int depth) {
    std::string text;
    for (size_t i = 0; i < node.outputs.size(); ++i)
      text += fmt::format("{}%{}", i ? ", " : "", name(node.outputs[i]));
    text += fmt::format(" = {}(", node.op->name);
    for (size_t i = 0; i < node.inputs.size(); ++i)
      text += fmt::format("{}%{}", i ? ", " : "", name(node.inputs[i]));
    text += ")";
    if (!node.attributes.empty()) text += " " + node.attributes.text();
    text += " : ";
    for (size_t i = 0; i < node.outputs.size(); ++i)
      text += (i ? ", " : "") + graph_.type(node.outputs[i]).text();
    if (node.body)
      text += " {\n" + Printer(*node.body, origins_).graph(depth + 2) + "\n" +
              std::string(static_cast<size_t>(depth) * 2 + 2, ' ') + "}";
    if (!origins_) return text;
    if (!node.location.empty() || !node.scope.empty()) text += "  # " + node.location;
    if (!node.scope.empty()) text += " @ " + node.scope;
    return text;
  }

 private:
  /// " of "w" {dtype=bf16, columns=32, depth=2, transposed=true}", of a derived weight.
  static std::string origin(const Graph::Input& input) {
    if (!input.derived) return "";
    Attributes how;
    if (input.derived->dtype) how.set("dtype", *input.derived->dtype);
    if (const auto& packing = input.derived->packing) {
      how.set("columns", packing->columns);
      how.set("depth", packing->depth);
      how.set("transposed", packing->transposed);
    }
    if (input.derived->scales) how.set("scales", true);
    return fmt::format(" of {} {}", quoted_text(input.derived->parameter), how.text());
  }

  int& name(Value value) { return names_[static_cast<size_t>(value.id)]; }

  const Graph& graph_;
  bool origins_;
  std::vector<int> names_;
  std::string indent_;
};

}  // namespace

std::string print(const Graph& graph) { return Printer(graph, true).graph(0) + "\n"; }

std::string print_node(const Graph& graph, const Node& node) {
  return Printer(graph, true).node(node, 0);
}

uint64_t graph_hash(const Graph& graph) { return hash_text(Printer(graph, false).graph(0)); }

}  // namespace fullbore
