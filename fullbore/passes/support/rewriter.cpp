#include "fullbore/passes/support/rewriter.h"

#include "fullbore/base/check.h"
#include "fullbore/ir/op_def.h"

namespace fullbore {

Rewriter::Rewriter(const Graph& from)
    : from_(from), builder_(from.name()), values_(static_cast<size_t>(from.value_count())) {
  for (const Graph::Input& input : from.inputs())
    map(input.value, builder_.input_like(input, from.type(input.value)).value());
}

Rewriter::Rewriter(const Graph& from, std::span<const TensorType> input_types)
    : from_(from), builder_(from.name()), values_(static_cast<size_t>(from.value_count())) {
  for (size_t i = 0; i < from.inputs().size(); ++i) {
    const Graph::Input& input = from.inputs()[i];
    map(input.value, builder_.input_like(input, input_types[i]).value());
  }
}

std::vector<Value> Rewriter::operands(const Node& node) const {
  std::vector<Value> result;
  for (Value input : node.inputs) result.push_back((*this)[input]);
  return result;
}

std::vector<Tensor> Rewriter::tensors(const std::vector<Value>& olds) {
  std::vector<Tensor> result;
  for (Value old : olds) result.push_back(tensor(old));
  return result;
}

void Rewriter::map(const Node& node, std::span<const Tensor> results) {
  FB_CHECK(results.size() == node.outputs.size(), "{} results for {} of {}", results.size(),
           node.outputs.size(), node.op->name);
  for (size_t i = 0; i < results.size(); ++i) {
    FB_CHECK(results[i].type() == from_.type(node.outputs[i]), "{} became {}",
             from_.type(node.outputs[i]).text(), results[i].type().text());
    map(node.outputs[i], results[i].value());
  }
}

void Rewriter::copy(const Node& node, std::shared_ptr<const Graph> body) {
  Node changed = node;
  changed.body = std::move(body);
  map(node, builder_.emit_like(changed, tensors(node.inputs)));
}

Graph Rewriter::finish() {
  for (const Graph::Output& output : from_.outputs())
    builder_.output(output.name, tensor(output.value), output.updates);
  return builder_.take();
}

std::shared_ptr<const Graph> rewritten_body(const Node& node,
                                            const std::function<Graph(const Graph&)>& rewrite) {
  return node.body ? std::make_shared<const Graph>(rewrite(*node.body)) : nullptr;
}

}  // namespace fullbore
