#include "fullbore/passes/gemm/gemm_bias.h"

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "fullbore/ir/op_def.h"
#include "fullbore/ops/matmul_bias.h"
#include "fullbore/ops/op_handles.h"
#include "fullbore/ops/ops.h"
#include "fullbore/passes/support/rewriter.h"

namespace fullbore {
namespace {

/// A matmul and the vector that is added to its columns before they are rounded.
struct Biased {
  const Node* matmul;
  const Node* repeated;              ///< the vector, as it is added
  std::vector<const Node*> between;  ///< what is neither read nor made any more
};

/// What a graph has of these.
class BiasedMatmuls {
 public:
  BiasedMatmuls(const Graph& graph, const Target& target)
      : graph_(graph), target_(target), reads_(static_cast<size_t>(graph.value_count())) {
    for (const Node& node : graph.nodes())
      for (const Value input : node.inputs) ++reads_[static_cast<size_t>(input.id)];
    for (const Graph::Output& output : graph.outputs())
      ++reads_[static_cast<size_t>(output.value.id)];
    for (const Node& node : graph.nodes())
      if (const std::optional<Biased> biased = find(node)) {
        found_.emplace(&node, *biased);
        vanishing_.insert(biased->matmul);
        vanishing_.insert(biased->between.begin(), biased->between.end());
        if (--reads_[static_cast<size_t>(biased->repeated->outputs[0].id)] == 0)
          vanishing_.insert(biased->repeated);
      }
  }

  bool vanishes(const Node& node) const { return vanishing_.contains(&node); }
  /// Of a rounding.
  const Biased* of(const Node& node) const {
    const auto found = found_.find(&node);
    return found == found_.end() ? nullptr : &found->second;
  }

 private:
  const Node* sole_producer(Value value, const OpDef& op) const {
    const Node* const node = graph_.producer_node(value);
    return node != nullptr && node->op == &op && reads_[static_cast<size_t>(value.id)] == 1
               ? node
               : nullptr;
  }

  /// `sums`: of the addition; `y`: rounded.
  bool fits(const Biased& found, const TensorType& sums, const TensorType& y) const {
    const TensorType& bias = graph_.type(found.repeated->inputs[0]);
    const int64_t columns = y.shape[y.shape.rank() - 1];
    return bias.shape.rank() > 0 && bias.elements() == columns &&
           bias.shape[bias.shape.rank() - 1] == columns && bias.dtype == DType::f32 &&
           sums.dtype == DType::f32 && graph_.type(found.matmul->outputs[0]).shape == y.shape &&
           is_low_precision(y.dtype) && graph_.type(found.matmul->inputs[0]).dtype == y.dtype &&
           target_.is_native(op::matmul_bias, y.dtype);
  }

  std::optional<Biased> find(const Node& rounding) const {
    if (rounding.op != op::cast) return std::nullopt;
    const Node* const sum = sole_producer(rounding.inputs[0], op::add);
    if (sum == nullptr) return std::nullopt;
    for (size_t i = 0; i < 2; ++i) {
      Biased found{nullptr, graph_.producer_node(sum->inputs[1 - i]), {sum}};
      Value sums = sum->inputs[i];
      if (const Node* const widening = sole_producer(sums, op::cast)) {
        found.between.push_back(widening);
        sums = widening->inputs[0];
      }
      found.matmul = sole_producer(sums, op::matmul);
      if (found.matmul != nullptr && found.repeated != nullptr &&
          found.repeated->op == op::broadcast_to &&
          fits(found, graph_.type(sum->outputs[0]), graph_.type(rounding.outputs[0])))
        return found;
    }
    return std::nullopt;
  }

  const Graph& graph_;
  const Target& target_;
  std::vector<int> reads_;  // per value
  std::map<const Node*, Biased> found_;
  std::set<const Node*> vanishing_;
};

}  // namespace

Graph gemm_bias(const Graph& graph, const Target& target) {
  const BiasedMatmuls biased(graph, target);
  Rewriter rewriter(graph);
  for (const Node& node : graph.nodes()) {
    if (biased.vanishes(node)) continue;
    const Biased* const found = biased.of(node);
    if (found == nullptr) {
      rewriter.copy(
          node, rewritten_body(node, [&](const Graph& body) { return gemm_bias(body, target); }));
      continue;
    }
    const Origin origin(rewriter.builder(), *found->matmul);
    std::vector<Tensor> operands = rewriter.tensors(found->matmul->inputs);
    const Tensor bias = rewriter.tensor(found->repeated->inputs[0]);
    operands.push_back(bias.rank() == 1 ? bias : reshape(bias, {bias.type().elements()}));
    const Attributes attributes{
        {"transpose_a", found->matmul->attributes.get<bool>("transpose_a")},
        {"transpose_b", found->matmul->attributes.get<bool>("transpose_b")}};
    rewriter.map(node,
                 rewriter.builder().emit(op::matmul_bias, operands, attributes, origin.loc()));
  }
  return rewriter.finish();
}

}  // namespace fullbore
