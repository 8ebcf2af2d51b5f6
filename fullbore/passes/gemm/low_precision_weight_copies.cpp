#include "fullbore/passes/gemm/low_precision_weight_copies.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "fullbore/ir/op_def.h"
#include "fullbore/ops/op_handles.h"
#include "fullbore/passes/gemm/derived_weights.h"
#include "fullbore/passes/support/rewriter.h"

namespace fullbore {
namespace {

class KeptCopies {
 public:
  KeptCopies(const Graph& graph, const Target& target)
      : graph_(graph), target_(target), rewriter_(graph) {
    for (size_t i = 0; i < graph.inputs().size(); ++i)
      inputs_[graph.inputs()[i].value] = static_cast<int>(i);
    for (const Node& node : graph.nodes()) read_.insert(node.inputs.begin(), node.inputs.end());
  }

  Graph run() {
    for (const Node& node : graph_.nodes()) {
      if (const auto copy = copy_made_by(node))
        rewriter_.map(node.outputs[0], input(*copy, node).value());
      else
        rewriter_.copy(node);
    }
    return finish();
  }

 private:
  struct Kept {
    DerivedWeight copy;
    Tensor input;
    const Node* cast = nullptr;
  };

  // The cast of a parameter that a node reads.
  std::optional<DerivedWeight> copy_made_by(const Node& node) const {
    if (node.op != op::cast || !read_.contains(node.outputs[0])) return std::nullopt;
    const auto from = inputs_.find(node.inputs[0]);
    if (from == inputs_.end()) return std::nullopt;
    auto copy = derivable(graph_.inputs()[static_cast<size_t>(from->second)], target_);
    const DType dtype = graph_.type(node.outputs[0]).dtype;
    if (!copy || copy->dtype || !is_low_precision(dtype)) return std::nullopt;
    copy->dtype = dtype;
    return copy;
  }

  Tensor input(const DerivedWeight& copy, const Node& cast) {
    const std::string name = copy.name();
    if (const int known = rewriter_.to().find_input(name); known >= 0)
      return {&rewriter_.builder(), rewriter_.to().inputs()[static_cast<size_t>(known)].value};
    const Tensor input = rewriter_.builder().input(copy, graph_.type(cast.outputs[0]));
    kept_.push_back({copy, input, &cast});
    return input;
  }

  Graph finish() {
    GraphBuilder& builder = rewriter_.builder();
    std::vector<std::pair<const Kept*, Tensor>> updates;
    for (const Kept& kept : kept_)
      if (const auto next = update_of(graph_, inputs_.at(kept.cast->inputs[0]))) {
        const Origin origin(builder, *kept.cast);
        updates.emplace_back(&kept, derive(kept.copy, rewriter_.tensor(*next)));
      }
    for (const Graph::Output& output : graph_.outputs())
      builder.output(output.name, rewriter_.tensor(output.value), output.updates);
    for (const auto& [kept, value] : updates)
      builder.output(kept->copy.name(), value, builder.graph().find_input(kept->copy.name()));
    return builder.take();
  }

  const Graph& graph_;
  const Target& target_;
  Rewriter rewriter_;
  std::map<Value, int> inputs_;
  std::set<Value> read_;
  std::vector<Kept> kept_;
};

}  // namespace

Graph low_precision_weight_copies(const Graph& graph, const Target& target) {
  return target.keeps_derived_weights ? KeptCopies(graph, target).run() : graph;
}

}  // namespace fullbore
