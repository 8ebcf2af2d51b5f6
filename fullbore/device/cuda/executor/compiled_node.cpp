#include "fullbore/device/cuda/executor/compiled_node.h"

#include <fmt/format.h>

#include "fullbore/ir/op_def.h"

namespace fullbore::cuda {
namespace {

/// "tanh,mul f32[768, 512] in layer0.mlp (models/example.cpp:88)".
std::string text_of(const Graph& graph, const Node& node) {
  std::string text;
  if (node.body)
    for (const Node& inner : node.body->nodes())
      text += fmt::format("{}{}", text.empty() ? "" : ",", inner.op->name);
  else
    text = node.op->name;
  if (!node.outputs.empty()) text += " " + graph.type(node.outputs[0]).text();
  if (!node.scope.empty()) text += " in " + node.scope;
  if (!node.location.empty()) text += fmt::format(" ({})", node.location);
  return text;
}

}  // namespace

CompiledNode::CompiledNode(std::unique_ptr<CudaKernel> kernel, const Graph& graph, const Node& node)
    : kernel_(std::move(kernel)), inputs_(node.inputs.size()), node_(text_of(graph, node)) {
  for (const Value value : node.inputs) operand_bytes_.push_back(graph.type(value).bytes());
  for (const Value value : node.outputs) operand_bytes_.push_back(graph.type(value).bytes());
}

const std::vector<Launch>& CompiledNode::launches() const {
  static const std::vector<Launch> none;
  return kernel_ ? kernel_->launches() : none;
}

std::string CompiledNode::description() const {
  return kernel_ ? kernel_->description() : "empty " + node_;
}

}  // namespace fullbore::cuda
