#include "fullbore/passes/gemm/prepack_operands.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "fullbore/ir/loop.h"
#include "fullbore/ir/op_def.h"
#include "fullbore/ops/op_handles.h"
#include "fullbore/passes/gemm/derived_weights.h"
#include "fullbore/passes/support/rewriter.h"

namespace fullbore {
namespace {

// Does the target's kernel of prepacked operands take such a matmul?
bool is_taken(const PackingTarget::Layout& layout, const Graph& graph, const Node& node) {
  if (layout.whole_depth == 0) return true;
  const Shape &y = graph.type(node.outputs[0]).shape, &b = graph.type(node.inputs[1]).shape;
  const int64_t columns = y[y.rank() - 1], depth = b.elements() / std::max<int64_t>(1, columns);
  const bool one_matrix = y.elements() == y[y.rank() - 2] * columns;
  return one_matrix && !node.attributes.get<bool>("transpose_a") && columns >= layout.columns &&
         depth % layout.whole_depth == 0;
}

// How the target would have the right operand of a matmul, if prepacking makes the matmul faster.
std::optional<Packing> packing_of(const Graph& graph, const Node& node, const Target& target) {
  if (node.op != op::matmul) return std::nullopt;
  const auto layout = target.packing.layouts.find(graph.type(node.inputs[1]).dtype);
  if (layout == target.packing.layouts.end()) return std::nullopt;
  const Shape& y = graph.type(node.outputs[0]).shape;
  const int64_t rows = y[y.rank() - 2], columns = y[y.rank() - 1];
  const bool transposed = node.attributes.get<bool>("transpose_b");
  // Where rows must be alike, there are no dot products that read a transposed matrix where it lies.
  const int64_t fewest = transposed && target.row_invariant ? 1
                         : transposed                       ? layout->second.fewest_rows_transposed
                                                            : layout->second.fewest_rows;
  if (rows < std::max<int64_t>(1, fewest) || rows > target.packing.most_rows) return std::nullopt;
  // One by a column is one by a vector.
  if (columns < 2 || graph.type(node.inputs[1]).elements() == 0) return std::nullopt;
  if (!is_taken(layout->second, graph, node)) return std::nullopt;
  return Packing{transposed, std::min(columns, layout->second.columns), layout->second.vnni};
}

/// A value by where it is made: what a loop captures is the value outside.
struct Source {
  int scope = 0;  ///< a number of the graph or body
  Value value{};
  double iterations = 1;  ///< of all loops around it

  auto key(const Packing& packing) const { return std::tuple(scope, value.id, packing); }
};

/// The inputs of a graph of whose values copies can be kept, where the target keeps any.
class Copied {
 public:
  struct Input {
    DerivedWeight copy;
    std::optional<Value> update;  ///< what replaces it in this graph
  };

  Copied(const Graph& graph, const Target& target) {
    for (size_t i = 0; target.keeps_derived_weights && i < graph.inputs().size(); ++i)
      if (const auto copy = derivable(graph.inputs()[i], target))
        inputs_[graph.inputs()[i].value] = {*copy, update_of(graph, static_cast<int>(i))};
  }
  const Input* find(Value value) const {
    const auto found = inputs_.find(value);
    return found == inputs_.end() ? nullptr : &found->second;
  }

 private:
  std::map<Value, Input> inputs_;
};

/// The sources of a graph's or a body's values.
class Scope {
 public:
  Scope(int number, double iterations) : number_(number), iterations_(iterations) {}

  /// A body: `captured` operands are from `around`.
  static Scope of_body(int number, const Node& node, const Scope& around) {
    const LoopShape shape(node);
    Scope scope(number,
                around.iterations_ * static_cast<double>(std::max<int64_t>(1, shape.iterations)));
    for (int i = 0; i < shape.captured; ++i) {
      const auto inner = static_cast<size_t>(1 + shape.carried + shape.sliced + i);
      const auto outer = static_cast<size_t>(shape.first_captured() + i);
      scope.captured_[node.body->inputs()[inner].value] = around.source(node.inputs[outer]);
    }
    return scope;
  }

  Source source(Value value) const {
    const auto found = captured_.find(value);
    return found != captured_.end() ? found->second : Source{number_, value, iterations_};
  }
  double iterations() const { return iterations_; }
  bool is_outermost() const { return number_ == 0; }

 private:
  int number_;
  double iterations_;
  std::map<Value, Source> captured_;
};

// Prepacked weights that one reader is enough for, at most: a model of billions of parameters is not to be in memory twice,
// or three times where its gradients flow through it.
constexpr int64_t kMostKeptForOne = int64_t{4} << 30;

/// How often each source would, prepacked, be read for each time that it is made. Bodies are numbered in the order
/// in which both this and the rewriting meet them.
class Uses {
 public:
  Uses(const Graph& graph, const Target& target) : target_(target), copied_(graph, target) {
    count(graph, Scope(0, 1));
    int64_t kept = 0;
    for (const auto& [key, uses] : uses_) {
      const Value value{std::get<1>(key)};
      if (std::get<0>(key) == 0 && is_never_replaced(value) &&
          target.packing.layouts.at(graph.type(value).dtype).kept_for_one)
        kept += graph.type(value).bytes();
    }
    // Where rows must be alike no matmul reads a transposed matrix as it lies: each would copy it for itself.
    keeps_for_one_ = target.row_invariant || kept <= kMostKeptForOne;
  }

  bool are_enough(const Source& source, const Packing& packing, bool kept_for_one) const {
    const auto found = uses_.find(source.key(packing));
    if (found == uses_.end()) return false;
    // What is never replaced is prepacked once and serves every run.
    return (source.scope == 0 && kept_for_one && keeps_for_one_ &&
            is_never_replaced(source.value)) ||
           found->second >= static_cast<double>(target_.packing.fewest_uses);
  }
  const Copied& copied() const { return copied_; }

 private:
  bool is_never_replaced(Value value) const {
    const Copied::Input* const copied = copied_.find(value);
    return copied && !copied->update;
  }

  void count(const Graph& graph, const Scope& scope) {
    for (const Node& node : graph.nodes()) {
      if (is_loop(node)) {
        count(*node.body, Scope::of_body(++bodies_, node, scope));
      } else if (const auto packing = packing_of(graph, node, target_)) {
        const Source source = scope.source(node.inputs[1]);
        uses_[source.key(*packing)] += scope.iterations() / source.iterations;
      }
    }
  }

  const Target& target_;
  const Copied copied_;
  int bodies_ = 0;
  std::map<std::tuple<int, int32_t, Packing>, double> uses_;
  bool keeps_for_one_ = true;
};

/// Rewrites a graph, and as an Inner one a body, whose loop then hands packed operands in.
class Packed {
 public:
  /// A packed operand that the body is to be given, of a value that it captures.
  struct Wanted {
    Value captured;
    Packing packing;
  };

  Packed(const Graph& graph, const Target& target, const Uses& uses, const Scope& scope,
         int& bodies, std::map<Value, TensorType> captured)
      : graph_(graph),
        target_(target),
        uses_(uses),
        scope_(scope),
        bodies_(bodies),
        captured_(std::move(captured)),
        rewriter_(graph) {}

  Graph run() {
    for (const Node& node : graph_.nodes()) {
      if (is_loop(node)) {
        rewrite_loop(node);
        continue;
      }
      const auto packing = packing_of(graph_, node, target_);
      if (packing && uses_.are_enough(scope_.source(node.inputs[1]), *packing, kept_for_one(node)))
        multiply(node, *packing);
      else
        rewriter_.copy(node);
    }
    return finish();
  }
  const std::vector<Wanted>& wanted() const { return wanted_; }

 private:
  bool kept_for_one(const Node& node) const {
    return target_.row_invariant ||
           target_.packing.layouts.at(graph_.type(node.inputs[1]).dtype).kept_for_one;
  }

  void multiply(const Node& node, const Packing& packing) {
    const Origin origin(rewriter_.builder(), node);
    const Tensor b = packed(node.inputs[1], packing);
    const Shape& y = graph_.type(node.outputs[0]).shape;
    const Tensor matmul =
        rewriter_.builder().emit_one(op::prepacked_matmul, {rewriter_.tensor(node.inputs[0]), b},
                                     {{"transpose_a", node.attributes.get<bool>("transpose_a")},
                                      {"columns", y[y.rank() - 1]},
                                      {"wide", node.attributes.get<bool>("wide")}},
                                     origin.loc());
    rewriter_.map(node, std::span(&matmul, 1));
  }

  // Made here, or handed in.
  Tensor packed(Value value, const Packing& packing) {
    Tensor& known = packed_[{value, packing}];
    if (known.valid()) return known;
    GraphBuilder& builder = rewriter_.builder();
    const Tensor matrix = rewriter_.tensor(value);
    const auto captured = captured_.find(value);
    const Copied::Input* const copied =
        scope_.is_outermost() ? uses_.copied().find(value) : nullptr;
    if (captured == captured_.end() && !copied)
      return known = builder.emit_one(op::prepack, {matrix}, packing_attributes(packing), {});
    const OpDef& op = op::prepack;
    const TensorType type =
        op.infer({op, std::span(&matrix.type(), 1), packing_attributes(packing), nullptr, {}})
            .front();
    if (copied) {
      DerivedWeight copy = copied->copy;
      copy.packing = packing;
      known = builder.input(copy, type);
      if (copied->update) updates_.push_back({copy, *copied->update});
      return known;
    }
    size_t number = wanted_.size();
    while (graph_.find_input(fmt::format("packed{}", number)) >= 0) ++number;
    known = builder.input(fmt::format("packed{}", number), Role::local, type);
    wanted_.push_back({value, packing});
    return known;
  }

  Graph finish() {
    GraphBuilder& builder = rewriter_.builder();
    std::vector<Tensor> packed_weights;
    for (const auto& [copy, value] : updates_)
      packed_weights.push_back(prepack(*copy.packing, rewriter_.tensor(value)));
    for (const Graph::Output& output : graph_.outputs())
      builder.output(output.name, rewriter_.tensor(output.value), output.updates);
    for (size_t i = 0; i < packed_weights.size(); ++i) {
      const std::string name = updates_[i].first.name();
      builder.output(name, packed_weights[i], builder.graph().find_input(name));
    }
    return builder.take();
  }

  void rewrite_loop(const Node& node) {
    const LoopShape shape(node);
    const auto first_inner = static_cast<size_t>(1 + shape.carried + shape.sliced);
    const auto first_outer = static_cast<size_t>(shape.first_captured());
    std::map<Value, TensorType> captured;
    std::map<Value, Value> outer;
    for (size_t i = first_inner; i < node.body->inputs().size(); ++i) {
      const Value inner = node.body->inputs()[i].value;
      captured[inner] = node.body->type(inner);
      outer[inner] = node.inputs[i - first_inner + first_outer];
    }
    const Scope scope = Scope::of_body(++bodies_, node, scope_);
    Packed body(*node.body, target_, uses_, scope, bodies_, std::move(captured));
    Graph rewritten = body.run();
    const Origin origin(rewriter_.builder(), node);
    std::vector<Tensor> operands = rewriter_.tensors(node.inputs);
    for (const Wanted& each : body.wanted())
      operands.push_back(packed(outer.at(each.captured), each.packing));
    if (!body.wanted().empty())
      rewritten = without_unread(rewritten, first_inner, first_outer, operands);
    Node changed = node;
    changed.body = std::make_shared<const Graph>(std::move(rewritten));
    rewriter_.map(node, rewriter_.builder().emit_like(changed, operands));
  }

  // The body without captured inputs that nothing reads any more, and the operands without theirs: the matrix
  // need not live beside its packed form.
  static Graph without_unread(const Graph& body, size_t first_inner, size_t first_outer,
                              std::vector<Tensor>& operands) {
    const std::vector<int> uses = body.use_counts();
    GraphBuilder builder(body.name());
    std::vector<Tensor> inputs,
        kept(operands.begin(), operands.begin() + static_cast<int64_t>(first_outer));
    for (size_t i = 0; i < body.inputs().size(); ++i) {
      const Graph::Input& input = body.inputs()[i];
      const bool is_captured = i >= first_inner;
      if (is_captured && uses[static_cast<size_t>(input.value.id)] == 0) {
        inputs.emplace_back();
        continue;
      }
      inputs.push_back(builder.input_like(input, body.type(input.value)));
      if (is_captured) kept.push_back(operands[i - first_inner + first_outer]);
    }
    const std::vector<Tensor> outputs = inline_graph(builder, body, inputs);
    for (size_t i = 0; i < outputs.size(); ++i) builder.output(body.outputs()[i].name, outputs[i]);
    operands = std::move(kept);
    return builder.take();
  }

  const Graph& graph_;
  const Target& target_;
  const Uses& uses_;
  const Scope scope_;
  int& bodies_;
  const std::map<Value, TensorType> captured_;
  Rewriter rewriter_;
  std::map<std::pair<Value, Packing>, Tensor> packed_;
  std::vector<Wanted> wanted_;
  std::vector<std::pair<DerivedWeight, Value>> updates_;  ///< of packed copies, and what is packed
};

}  // namespace

Graph prepack_operands(const Graph& graph, const Target& target) {
  if (target.packing.layouts.empty()) return graph;
  const Uses uses(graph, target);
  int bodies = 0;
  const Graph packed = Packed(graph, target, uses, Scope(0, 1), bodies, {}).run();
  return without_unread_derived_weights(packed, graph);
}

}  // namespace fullbore
