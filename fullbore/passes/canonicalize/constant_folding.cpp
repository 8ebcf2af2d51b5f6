#include "fullbore/passes/canonicalize/constant_folding.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "fullbore/ir/op_def.h"
#include "fullbore/ops/counted_rows.h"
#include "fullbore/ops/op_handles.h"
#include "fullbore/ops/ops.h"
#include "fullbore/passes/support/evaluate.h"
#include "fullbore/passes/support/rewriter.h"

namespace fullbore {
namespace {

constexpr int64_t kMostElements = 4096;
constexpr double kLargestExactInteger = 0x1p53;

bool uniform(const Literal& literal) {
  for (int64_t i = 1; i < literal.elements(); ++i) {
    const double first = literal.at(0), other = literal.at(i);
    if (std::signbit(first) != std::signbit(other)) return false;
    if (first != other && !(std::isnan(first) && std::isnan(other))) return false;
  }
  return true;
}

// Constants are written as doubles.
bool representable(const Literal& literal) {
  return std::all_of(literal.integers().begin(), literal.integers().end(), [](int64_t value) {
    return std::abs(static_cast<double>(value)) <= kLargestExactInteger;
  });
}

class Folding {
 public:
  explicit Folding(const Graph& graph) : graph_(graph), rewriter_(graph) {}

  Graph run() {
    for (const Node& node : graph_.nodes())
      if (!fold(node)) {
        rewriter_.copy(node,
                       rewritten_body(node, [](const Graph& body) { return Folding(body).run(); }));
        remember(node);
      }
    return rewriter_.finish();
  }

 private:
  // A tensor known while compiling: all of its elements, or one that stands for all.
  struct Known {
    Literal value;
    bool repeated = false;
  };

  const Known* known(Value old) const {
    const auto found = known_.find(old);
    return found == known_.end() ? nullptr : &found->second;
  }

  // Notes what a copied node makes if that is known: a constant, or one number everywhere.
  void remember(const Node& node) {
    const Value output = node.outputs[0];
    if (node.op == op::constant) {
      if (graph_.type(output).elements() > kMostElements) return;
      const auto results = evaluate(graph_, node, {});
      known_[output] = {results->at(0), false};
    } else if (node.op == op::broadcast_to) {
      const Known* x = known(node.inputs[0]);
      if (x && x->value.elements() == 1) known_[output] = {x->value, true};
    }
  }

  bool fold(const Node& node) {
    if (node.op == op::broadcast_to || node.inputs.empty()) return false;
    if (has_counted_rows(node)) return false;  // undefined rows are no constants
    std::vector<const Known*> operands;
    for (Value input : node.inputs) operands.push_back(known(input));
    if (std::find(operands.begin(), operands.end(), nullptr) != operands.end()) return false;
    return fold_repeated(node, operands) || fold_small(node, operands);
  }

  // One number everywhere in, one number everywhere out: one evaluation, whatever the shape.
  bool fold_repeated(const Node& node, const std::vector<const Known*>& operands) {
    if (!node.op->is(Tag::elementwise)) return false;
    for (const Known* operand : operands)
      if (operand->value.elements() != 1) return false;
    std::vector<Literal> scalars;
    for (const Known* operand : operands)
      scalars.push_back(Literal::of({operand->value.dtype(), {}}, {0}));
    for (size_t i = 0; i < scalars.size(); ++i) copy_first(scalars[i], operands[i]->value);
    Graph one;
    std::vector<Value> inputs;
    std::vector<const Literal*> pointers;
    for (const Literal& scalar : scalars) {
      inputs.push_back(one.add_input("", Role::local, scalar.type()));
      pointers.push_back(&scalar);
    }
    const Node& call = one.add_node(*node.op, inputs, node.attributes);
    const auto results = evaluate(one, call, pointers);
    return results && replace(node, *results);
  }

  static void copy_first(Literal& to, const Literal& from) {
    if (from.floating())
      to.reals()[0] = from.reals()[0];
    else
      to.integers()[0] = from.integers()[0];
  }

  bool fold_small(const Node& node, const std::vector<const Known*>& operands) {
    for (Value value : node.inputs)
      if (graph_.type(value).elements() > kMostElements) return false;
    for (Value value : node.outputs)
      if (graph_.type(value).elements() > kMostElements) return false;
    std::vector<Literal> whole;
    for (size_t i = 0; i < operands.size(); ++i)
      whole.push_back(spread(*operands[i], graph_.type(node.inputs[i])));
    std::vector<const Literal*> pointers;
    for (const Literal& literal : whole) pointers.push_back(&literal);
    const auto results = evaluate(graph_, node, pointers);
    return results && replace(node, *results);
  }

  static Literal spread(const Known& known, const TensorType& type) {
    if (!known.repeated) return known.value;
    Literal result(type);
    if (result.floating())
      std::fill(result.reals().begin(), result.reals().end(), known.value.reals()[0]);
    else
      std::fill(result.integers().begin(), result.integers().end(), known.value.integers()[0]);
    return result;
  }

  bool replace(const Node& node, const std::vector<Literal>& results) {
    if (!std::all_of(results.begin(), results.end(), representable)) return false;
    const Origin origin(rewriter_.builder(), node);
    std::vector<Tensor> tensors;
    for (size_t i = 0; i < results.size(); ++i) {
      const TensorType& type = graph_.type(node.outputs[i]);
      const bool repeated = results[i].elements() > 0 && uniform(results[i]);
      if (repeated) {
        tensors.push_back(full(rewriter_.builder(), type, results[i].at(0), origin.loc()));
        Literal one({type.dtype, {}});
        copy_first(one, results[i]);
        known_[node.outputs[i]] = {std::move(one), true};
      } else {
        std::vector<double> values;
        for (int64_t k = 0; k < results[i].elements(); ++k) values.push_back(results[i].at(k));
        tensors.push_back(constant(rewriter_.builder(), type, std::move(values), origin.loc()));
        known_[node.outputs[i]] = {results[i], false};
      }
    }
    rewriter_.map(node, tensors);
    return true;
  }

  const Graph& graph_;
  Rewriter rewriter_;
  std::map<Value, Known> known_;
};

}  // namespace

Graph constant_folding(const Graph& graph, const Target&) { return Folding(graph).run(); }

}  // namespace fullbore
