#pragma once
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "fullbore/ir/graph.h"
#include "fullbore/ir/tensor.h"

namespace fullbore {

/// A graph being rebuilt: what every pass is written with. Has the inputs of `from` from the start;
/// the pass walks from's nodes in order, copying some and saying what the results of others become.
class Rewriter {
 public:
  explicit Rewriter(const Graph& from);
  /// With inputs of other types, one for each of `from`.
  Rewriter(const Graph& from, std::span<const TensorType> input_types);

  GraphBuilder& builder() { return builder_; }
  const Graph& to() const { return builder_.graph(); }

  /// What a value of `from` has become.
  Value operator[](Value old) const { return values_[static_cast<size_t>(old.id)]; }
  Tensor tensor(Value old) { return {&builder_, (*this)[old]}; }
  std::vector<Value> operands(const Node& node) const;
  std::vector<Tensor> tensors(const std::vector<Value>& olds);

  void map(Value old, Value now) { values_[static_cast<size_t>(old.id)] = now; }
  void map(const Node& node, std::span<const Tensor> results);

  /// The same node on what its operands have become, with another body if one is given.
  void copy(const Node& node) { copy(node, node.body); }
  void copy(const Node& node, std::shared_ptr<const Graph> body);

  /// Declares the outputs of `from` and hands the graph out.
  Graph finish();

 private:
  const Graph& from_;
  GraphBuilder builder_;
  std::vector<Value> values_;
};

/// The node's body rewritten, or null if it has none.
std::shared_ptr<const Graph> rewritten_body(const Node& node,
                                            const std::function<Graph(const Graph&)>& rewrite);

}  // namespace fullbore
