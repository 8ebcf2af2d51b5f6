#include <fmt/format.h>

#include <algorithm>

#include "fullbore/device/interpret.h"
#include "fullbore/ir/op_def.h"
#include "fullbore/ir/print.h"
#include "tests/support/random_graph.h"

namespace fullbore {
namespace {

size_t place(Value value) { return static_cast<size_t>(value.id); }

/// What to leave out of a graph.
struct Cut {
  int output = -1;    ///< this output
  int node = -1;      ///< this node: its results become inputs, if anybody reads them
  bool dead = false;  ///< all nodes and inputs that are then not read
};

class Shrinking {
 public:
  explicit Shrinking(const RandomGraph& from) : graph_(from.graph), inputs_(from.inputs) {
    interpret(graph_, inputs_, [&](const Node&, std::span<const Literal> made) {
      results_.emplace_back(made.begin(), made.end());
    });
  }

  RandomGraph without(const Cut& cut) const {
    const std::vector<bool> read = values_read(cut);
    RandomGraph result{Graph(graph_.name()), {}};
    std::vector<Value> values(read.size());
    std::vector<int> input_index(graph_.inputs().size(), -1);
    const auto add_input = [&](Value value, const std::string& name, Role role,
                               const Literal& literal) {
      values[place(value)] = result.graph.add_input(name, role, graph_.type(value));
      result.inputs.push_back(literal);
    };
    for (size_t i = 0; i < graph_.inputs().size(); ++i) {
      const Graph::Input& input = graph_.inputs()[i];
      if (cut.dead && !read[place(input.value)] && !is_updated(i)) continue;
      input_index[i] = static_cast<int>(result.inputs.size());
      add_input(input.value, input.name, input.role, inputs_[i]);
    }
    for (size_t i = 0; i < graph_.nodes().size(); ++i) {
      const Node& node = graph_.nodes()[i];
      if (static_cast<int>(i) == cut.node) {
        for (size_t k = 0; k < node.outputs.size(); ++k)
          if (read[place(node.outputs[k])])
            add_input(node.outputs[k], unused_name(result.graph), Role::batch, results_[i][k]);
        continue;
      }
      if (cut.dead && !any(node.outputs, read)) continue;
      std::vector<Value> operands;
      for (Value value : node.inputs) operands.push_back(values[place(value)]);
      const Node& copy = result.graph.add_node_like(node, *node.op, std::move(operands),
                                                    node.attributes, node.body);
      for (size_t k = 0; k < node.outputs.size(); ++k)
        values[place(node.outputs[k])] = copy.outputs[k];
    }
    for (size_t i = 0; i < graph_.outputs().size(); ++i) {
      const Graph::Output& output = graph_.outputs()[i];
      if (static_cast<int>(i) == cut.output) continue;
      const int updates =
          output.updates < 0 ? -1 : input_index[static_cast<size_t>(output.updates)];
      result.graph.add_output(output.name, values[place(output.value)], updates);
    }
    return result;
  }

 private:
  static bool any(const std::vector<Value>& values, const std::vector<bool>& flags) {
    return std::any_of(values.begin(), values.end(),
                       [&](Value value) { return flags[place(value)]; });
  }
  bool is_updated(size_t input) const {
    return std::any_of(graph_.outputs().begin(), graph_.outputs().end(), [&](const auto& output) {
      return output.updates == static_cast<int>(input);
    });
  }
  static std::string unused_name(const Graph& graph) {
    int number = 0;
    while (graph.find_input(fmt::format("cut{}", number)) >= 0) ++number;
    return fmt::format("cut{}", number);
  }
  // By nodes that stay and by outputs that stay.
  std::vector<bool> values_read(const Cut& cut) const {
    std::vector<bool> read(static_cast<size_t>(graph_.value_count()), false);
    for (size_t i = 0; i < graph_.outputs().size(); ++i)
      if (static_cast<int>(i) != cut.output) read[place(graph_.outputs()[i].value)] = true;
    for (size_t i = graph_.nodes().size(); i-- > 0;) {
      const Node& node = graph_.nodes()[i];
      if (static_cast<int>(i) == cut.node || (cut.dead && !any(node.outputs, read))) continue;
      for (Value value : node.inputs) read[place(value)] = true;
    }
    return read;
  }

  const Graph& graph_;
  const std::vector<Literal>& inputs_;
  std::vector<std::vector<Literal>> results_;  // per node
};

size_t size(const RandomGraph& each) {
  return each.graph.nodes().size() + each.graph.inputs().size() + each.graph.outputs().size();
}

}  // namespace

RandomGraph shrink(RandomGraph failing, const std::function<bool(const RandomGraph&)>& fails) {
  const auto try_without = [&](const Cut& cut) {
    RandomGraph smaller = Shrinking(failing).without(cut);
    if (size(smaller) >= size(failing) && cut.node < 0) return false;
    if (!fails(smaller)) return false;
    failing = std::move(smaller);
    return true;
  };
  for (bool changed = true; changed;) {
    changed = try_without({.dead = true});
    for (int i = static_cast<int>(failing.graph.outputs().size()); i-- > 0;)
      changed |= try_without({.output = i});
    // From the end: what a cut leaves unread goes with it.
    for (int i = static_cast<int>(failing.graph.nodes().size()); i-- > 0;) {
      if (i >= static_cast<int>(failing.graph.nodes().size())) continue;
      changed |= try_without({.node = i, .dead = true}) || try_without({.node = i});
    }
  }
  return failing;
}

std::string describe(uint64_t seed, const RandomGraph& failing) {
  std::string text = fmt::format("FB_FUZZ_SEED={}\n{}", seed, print(failing.graph));
  for (size_t i = 0; i < failing.inputs.size(); ++i) {
    const Literal& literal = failing.inputs[i];
    text += fmt::format("{} =", failing.graph.inputs()[i].name);
    for (int64_t k = 0; k < std::min<int64_t>(literal.elements(), 16); ++k)
      text += fmt::format(" {:.17g}", literal.at(k));
    text += literal.elements() > 16 ? " ...\n" : "\n";
  }
  return text;
}

}  // namespace fullbore
