#include "fullbore/ir/print.h"

#include <fmt/format.h>

#include "fullbore/base/hash.h"
#include "fullbore/ir/op_def.h"

namespace fullbore {
namespace {

/// Appends to one text: the graphs of large models are megabytes of it, and each start prints some.
class Printer {
 public:
  Printer(const Graph& graph, bool origins, std::string& text)
      : graph_(graph), origins_(origins), text_(text) {
    // Values are numbered in the order of the text, whenever their inputs were added, so that
    // reading the text back gives the same numbers.
    names_.resize(static_cast<size_t>(graph.value_count()));
    int next = 0;
    for (const Graph::Input& input : graph.inputs()) name(input.value) = next++;
    for (const Node& node : graph.nodes())
      for (Value output : node.outputs) name(output) = next++;
  }

  void graph(size_t depth) {
    indent(depth);
    add("graph ", quoted_text(graph_.name()), " {\n");
    for (const Graph::Input& input : graph_.inputs()) {
      indent(depth + 1);
      value(input.value);
      add(" = input ", quoted_text(input.name), " ", role_name(input.role), origin(input), " : ",
          graph_.type(input.value).text(), "\n");
    }
    for (const Node& node : graph_.nodes()) {
      indent(depth + 1);
      this->node(node, depth);
      add("\n");
    }
    for (const Graph::Output& output : graph_.outputs()) {
      indent(depth + 1);
      add("output ", quoted_text(output.name), " ");
      value(output.value);
      if (output.updates >= 0) {
        add(" updates ");
        number(output.updates);
      }
      add("\n");
    }
    indent(depth);
    add("}");
  }

  void node(const Node& node, size_t depth) {
    values(node.outputs);
    add(" = ", node.op->name, "(");
    values(node.inputs);
    add(")");
    if (!node.attributes.empty()) add(" ", node.attributes.text());
    add(" : ");
    for (size_t i = 0; i < node.outputs.size(); ++i)
      add(i ? ", " : "", graph_.type(node.outputs[i]).text());
    if (node.body) {
      add(" {\n");
      Printer(*node.body, origins_, text_).graph(depth + 2);
      add("\n");
      indent(depth + 1);
      add("}");
    }
    if (!origins_) return;
    if (!node.location.empty() || !node.scope.empty()) add("  # ", node.location);
    if (!node.scope.empty()) add(" @ ", node.scope);
  }

 private:
  template <class... Parts>
  void add(const Parts&... parts) {
    (text_.append(std::string_view(parts)), ...);
  }
  void indent(size_t depth) { text_.append(2 * depth, ' '); }
  void number(int number) {
    const fmt::format_int digits(number);
    text_.append(digits.data(), digits.size());
  }
  void value(Value value) {
    text_ += '%';
    number(name(value));
  }
  void values(const std::vector<Value>& list) {
    for (size_t i = 0; i < list.size(); ++i) {
      if (i > 0) add(", ");
      value(list[i]);
    }
  }

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
  std::string& text_;
  std::vector<int> names_;
};

std::string text_of(const Graph& graph, bool origins) {
  std::string text;
  Printer(graph, origins, text).graph(0);
  return text;
}

}  // namespace

std::string print(const Graph& graph) { return text_of(graph, true) + "\n"; }

std::string print_node(const Graph& graph, const Node& node) {
  std::string text;
  Printer(graph, true, text).node(node, 0);
  return text;
}

uint64_t graph_hash(const Graph& graph) { return hash_text(text_of(graph, false)); }

}  // namespace fullbore
