#include "fullbore/device/kernel_ir/lower.h"

#include <algorithm>

#include "fullbore/device/kernel_ir/body_lowering.h"
#include "fullbore/ir/fused_matmul.h"
#include "fullbore/ir/op_def.h"
#include "fullbore/ops/op_handles.h"

namespace fullbore::jit {
namespace {

// Leaves out the buffers that the kernel does not touch.
LoweredPiece with_used_buffers(KernelIr kernel) {
  std::vector<int> renamed(kernel.buffers.size(), -1);
  const auto use = [&](int buffer) { renamed[static_cast<size_t>(buffer)] = 0; };
  for (const Instruction& instruction : kernel.instructions)
    if (instruction.kind == Instruction::Kind::load) use(instruction.access.buffer);
  for (const Store& store : kernel.stores) use(store.access.buffer);
  for (const Symbol& symbol : kernel.symbols) use(symbol.buffer);
  LoweredPiece piece;
  std::vector<KernelBuffer> buffers;
  for (size_t i = 0; i < renamed.size(); ++i) {
    if (renamed[i] < 0) continue;
    renamed[i] = static_cast<int>(buffers.size());
    buffers.push_back(kernel.buffers[i]);
    piece.buffers.push_back(static_cast<int>(i));
  }
  for (Instruction& instruction : kernel.instructions)
    if (instruction.kind == Instruction::Kind::load)
      instruction.access.buffer = renamed[static_cast<size_t>(instruction.access.buffer)];
  for (Store& store : kernel.stores)
    store.access.buffer = renamed[static_cast<size_t>(store.access.buffer)];
  for (Symbol& symbol : kernel.symbols) symbol.buffer = renamed[static_cast<size_t>(symbol.buffer)];
  kernel.buffers = std::move(buffers);
  piece.kernel = std::move(kernel);
  return piece;
}

std::vector<KernelBuffer> node_buffers(const Graph& graph, const Node& node) {
  std::vector<KernelBuffer> buffers;
  for (Value input : node.inputs)
    buffers.push_back({graph.type(input).dtype, graph.type(input).elements(), false});
  for (Value output : node.outputs)
    buffers.push_back({graph.type(output).dtype, graph.type(output).elements(), true});
  return buffers;
}

std::map<Value, int> operand_leaves(const Node& node) {
  std::map<Value, int> leaves;
  for (size_t i = 0; i < node.inputs.size(); ++i)
    leaves.emplace(node.inputs[i], static_cast<int>(i));
  return leaves;
}

std::map<Value, int> body_leaves(const Graph& body) {
  std::map<Value, int> leaves;
  for (size_t i = 0; i < body.inputs().size(); ++i)
    leaves.emplace(body.inputs()[i].value, static_cast<int>(i));
  return leaves;
}

std::optional<LoweredPiece> lower_body(const Graph& graph, std::map<Value, int> leaves,
                                       std::vector<BodyOutput> outputs,
                                       std::vector<KernelBuffer> buffers, std::string* why_not) {
  std::optional<KernelIr> kernel =
      BodyLowering(graph, std::move(leaves), std::move(outputs), std::move(buffers)).run(why_not);
  if (!kernel) return std::nullopt;
  return with_used_buffers(std::move(*kernel));
}

// One copy per operand, into its part of the result.
std::optional<LoweredNode> lower_concat(const Graph& graph, const Node& node,
                                        std::string* why_not) {
  LoweredNode result;
  const auto axis = static_cast<size_t>(node.attributes.get<int64_t>("axis"));
  const TensorType& target = graph.type(node.outputs[0]);
  std::vector<int64_t> offsets(static_cast<size_t>(target.shape.rank()), 0);
  for (Value input : node.inputs) {
    if (graph.type(input).elements() > 0) {
      auto piece = lower_body(graph, operand_leaves(node),
                              {{input, static_cast<int>(node.inputs.size()), target, offsets}},
                              node_buffers(graph, node), why_not);
      if (!piece) return std::nullopt;
      result.pieces.push_back(std::move(*piece));
    }
    offsets[axis] += graph.type(input).shape[static_cast<int>(axis)];
  }
  return result;
}

// Where x is updated in place, only the window is written.
bool add_window_update(const Graph& graph, const Node& node, LoweredNode& lowered) {
  const auto axis = static_cast<int>(node.attributes.get<int64_t>("axis"));
  const TensorType& target = graph.type(node.outputs[0]);
  BodyOutput window{
      node.inputs[1], 3,
      target,         std::vector<int64_t>(static_cast<size_t>(target.shape.rank()), 0),
      axis,           node.inputs[2]};
  auto piece =
      lower_body(graph, operand_leaves(node), {window}, node_buffers(graph, node), nullptr);
  if (!piece) return false;
  lowered.in_place_pieces.push_back(std::move(*piece));
  lowered.in_place_input = 0;
  return true;
}

}  // namespace

std::optional<LoweredNode> lower(const Graph& graph, const Node& node, std::string* why_not) {
  if (node.op == op::concat) return lower_concat(graph, node, why_not);
  LoweredNode result;
  std::vector<BodyOutput> outputs;
  std::optional<LoweredPiece> piece;
  const auto inputs = static_cast<int>(node.inputs.size());
  if (node.body != nullptr) {
    if (node.op != op::fused) {
      if (why_not != nullptr) *why_not = "it has a body that is not one kernel";
      return std::nullopt;
    }
    const Graph& body = *node.body;
    std::map<Value, int> leaves = body_leaves(body);
    for (size_t i = 0; i < body.outputs().size(); ++i)
      outputs.push_back({body.outputs()[i].value, inputs + static_cast<int>(i),
                         body.type(body.outputs()[i].value)});
    piece =
        lower_body(body, std::move(leaves), std::move(outputs), node_buffers(graph, node), why_not);
  } else {
    for (size_t i = 0; i < node.outputs.size(); ++i)
      outputs.push_back(
          {node.outputs[i], inputs + static_cast<int>(i), graph.type(node.outputs[i])});
    piece = lower_body(graph, operand_leaves(node), std::move(outputs), node_buffers(graph, node),
                       why_not);
  }
  if (!piece) return std::nullopt;
  result.pieces.push_back(std::move(*piece));
  if (node.op == op::dynamic_update_slice) add_window_update(graph, node, result);
  return result;
}

std::optional<LoweredPiece> lower_epilogue(const Graph& graph, const Node& node,
                                           std::string* why_not) {
  const Graph& body = *node.body;
  const Value matmul = fused_matmul(node)->outputs[0];
  const auto inputs = static_cast<int>(node.inputs.size());
  std::vector<KernelBuffer> buffers = node_buffers(graph, node);
  std::map<Value, int> leaves = body_leaves(body);
  leaves.emplace(matmul, static_cast<int>(buffers.size()));
  // What renames the matmul is the same bytes by another shape, which may not be affine in the matmul's.
  for (const Node& inner : body.nodes()) {
    const auto source = inner.inputs.empty() ? leaves.end() : leaves.find(inner.inputs[0]);
    if (inner.op->is(Tag::identity) && source != leaves.end() &&
        source->second == static_cast<int>(buffers.size()))
      leaves.emplace(inner.outputs[0], source->second);
  }
  buffers.push_back({body.type(matmul).dtype, body.type(matmul).elements(), false});
  std::vector<BodyOutput> outputs;
  for (size_t i = 0; i < body.outputs().size(); ++i)
    if (const Value value = body.outputs()[i].value; value != matmul)
      outputs.push_back({value, inputs + static_cast<int>(i), body.type(value)});
  if (outputs.empty()) {
    if (why_not != nullptr) *why_not = "there is nothing behind its matmul";
    return std::nullopt;
  }
  return lower_body(body, std::move(leaves), std::move(outputs), std::move(buffers), why_not);
}

}  // namespace fullbore::jit
