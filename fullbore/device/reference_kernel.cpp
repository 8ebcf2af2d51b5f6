#include "fullbore/device/reference_kernel.h"

#include <fmt/format.h>

#include <cstring>

#include "fullbore/device/interpret.h"
#include "fullbore/ir/literal.h"
#include "fullbore/ir/op_def.h"

namespace fullbore {

ReferenceKernel::ReferenceKernel(const Graph& graph, const Node& node) : node_(node) {
  for (const Value input : node.inputs) inputs_.push_back(graph.type(input));
  for (const Value output : node.outputs) outputs_.push_back(graph.type(output));
}

std::string ReferenceKernel::description() const {
  return fmt::format("reference {}", node_.op->name);
}

void ReferenceKernel::run(std::span<void* const> operands) const {
  std::vector<Literal> inputs;
  for (size_t i = 0; i < inputs_.size(); ++i)
    inputs.push_back(Literal::from_bytes(inputs_[i], operands[i]));
  std::vector<const Literal*> given;
  for (const Literal& input : inputs) given.push_back(&input);
  std::vector<Literal> results = interpret_node(node_, outputs_, given);
  for (size_t i = 0; i < results.size(); ++i) {
    results[i].round();
    const std::vector<char> bytes = results[i].bytes();
    if (!bytes.empty()) std::memcpy(operands[inputs_.size() + i], bytes.data(), bytes.size());
  }
}

std::unique_ptr<Kernel> ReferenceCompiler::compile(const Graph& graph, const Node& node, int) {
  return std::make_unique<ReferenceKernel>(graph, node);
}

}  // namespace fullbore
