// The fake driver's calls about graphs.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <string>
#include <utility>

#include "fullbore/device/cuda/driver/handles.h"
#include "tests/fake_cuda/entry.h"
#include "tests/fake_cuda/graph_calls.h"
#include "tests/fake_cuda/kernel_launch.h"

using fullbore::cuda::ContextHandle;
using fullbore::cuda::CopyEnd;
using fullbore::cuda::CopyNode;
using fullbore::cuda::FillNode;
using fullbore::cuda::GraphExecHandle;
using fullbore::cuda::GraphHandle;
using fullbore::cuda::KernelNode;
using fullbore::cuda::NodeHandle;
using fullbore::cuda::StreamHandle;
using fullbore::fake_cuda::add_node;
using fullbore::fake_cuda::Card;
using fullbore::fake_cuda::Entry;
using fullbore::fake_cuda::Function;
using fullbore::fake_cuda::Graph;
using fullbore::fake_cuda::graph_of;
using fullbore::fake_cuda::GraphExec;
using fullbore::fake_cuda::GraphNode;
using fullbore::fake_cuda::index_of;
using fullbore::fake_cuda::machine;
using fullbore::fake_cuda::Stream;
namespace cuda = fullbore::cuda;

namespace fullbore::fake_cuda {

// A node is told by its graph's first number and its own, from 1 on.
std::optional<size_t> index_of(const Graph& graph, NodeHandle node) {
  const auto number = reinterpret_cast<uintptr_t>(node);
  if (number <= graph.first || number > graph.first + graph.nodes.size()) return std::nullopt;
  return number - graph.first - 1;
}

int add_node(NodeHandle* node, Graph& graph, const NodeHandle* before, size_t count,
             GraphNode made) {
  FakeCuda& told = machine().told;
  for (size_t i = 0; i < count; ++i) {
    const auto index = index_of(graph, before[i]);
    if (!index) return cuda::kInvalidValue;
    if (graph.nodes[*index].name + ">" + made.name == told.lose_edges)
      ++told.lost_in_graphs;
    else
      made.before.push_back(*index);
  }
  made.is_lost = made.name == told.lose_nodes;
  told.lost_in_graphs += made.is_lost ? 1 : 0;
  graph.nodes.push_back(std::move(made));
  *node = reinterpret_cast<NodeHandle>(graph.first + graph.nodes.size());
  return 0;
}

}  // namespace fullbore::fake_cuda

namespace {

// What was launched before keeps the nodes that it had. The handle is of the graph that it was made of, and no longer one
// when that is destroyed.
int set(GraphExecHandle handle, NodeHandle node, std::function<void()> make,
        std::vector<uint64_t> memory = {}) {
  auto& exec = *reinterpret_cast<GraphExec*>(handle);
  const auto index = index_of(*exec.nodes, node);
  if (!make || !machine().owned.contains(exec.from) || !index) return cuda::kInvalidValue;
  if (exec.nodes.use_count() > 1) exec.nodes = std::make_shared<Graph>(*exec.nodes);
  exec.nodes->nodes[*index].make = std::move(make);
  exec.nodes->nodes[*index].memory = std::move(memory);
  return 0;
}

int add(NodeHandle* node, GraphHandle graph, const NodeHandle* before, size_t count,
        std::string name, std::function<void()> make, std::vector<uint64_t> memory = {}) {
  if (!make) return cuda::kInvalidValue;
  return add_node(node, graph_of(graph), before, count,
                  {.name = std::move(name), .make = std::move(make), .memory = std::move(memory)});
}

bool has_conditions(const Graph& graph) {
  return std::ranges::any_of(machine().conditions,
                             [&](const auto& each) { return each.second.root == &graph; });
}

std::byte* bytes_at(Card& card, uint64_t pointer, size_t bytes) {
  const auto found = card.memory.at(pointer, static_cast<int64_t>(bytes));
  if (found.empty())
    machine().fail(cuda::kIllegalAddress,
                   fmt::format("{} bytes at {:#x} are in no allocation", bytes, pointer));
  return found.empty() ? nullptr : found.data();
}

std::function<void()> made_by(const KernelNode& kernel) {
  return fullbore::fake_cuda::launch_of(
      *reinterpret_cast<Function*>(kernel.function), {kernel.grid_x, kernel.grid_y, kernel.grid_z},
      {kernel.block_x, kernel.block_y, kernel.block_z}, kernel.shared_bytes, kernel.arguments);
}

int refusal_of(const KernelNode& kernel) {
  return fullbore::fake_cuda::refusal_of(*reinterpret_cast<Function*>(kernel.function),
                                         {kernel.grid_x, kernel.grid_y, kernel.grid_z});
}

// One end may be pinned memory of the host, which has to be there when the node is made.
std::function<void()> made_by(Card& card, const CopyNode& copy) {
  const auto is_known = [](const CopyEnd& end) {
    return end.memory == cuda::kMemoryOfDevice ||
           (end.memory == cuda::kMemoryOfHost && end.host != nullptr);
  };
  const auto is_host = [](const CopyEnd& end) { return end.memory == cuda::kMemoryOfHost; };
  if (!is_known(copy.from) || !is_known(copy.to) || (is_host(copy.from) && is_host(copy.to)) ||
      copy.height != 1 || copy.depth != 1)
    return {};
  const CopyEnd from = copy.from, to = copy.to;
  const size_t bytes = copy.width_bytes;
  return [=, &card] {
    const auto bytes_of = [&](const CopyEnd& end) -> std::byte* {
      if (!is_host(end)) return bytes_at(card, end.device, bytes);
      if (machine().is_pinned(end.host, bytes)) return static_cast<std::byte*>(end.host);
      machine().fail(cuda::kIllegalAddress, "a node of a graph copies memory that is not pinned");
      return nullptr;
    };
    const std::byte* const source = bytes_of(from);
    std::byte* const target = bytes_of(to);
    if (source != nullptr && target != nullptr) std::memmove(target, source, bytes);
  };
}

/// Of the card.
std::vector<uint64_t> memory_of(const CopyNode& copy) {
  std::vector<uint64_t> memory;
  for (const CopyEnd* const end : {&copy.from, &copy.to})
    if (end->memory == cuda::kMemoryOfDevice) memory.push_back(end->device);
  return memory;
}

/// As the fake driver's settings name the node.
std::string name_of(const CopyNode& copy) {
  if (copy.from.memory == cuda::kMemoryOfHost) return "copy_in";
  return copy.to.memory == cuda::kMemoryOfHost ? "copy_out" : "copy";
}

std::function<void()> made_by(Card& card, const FillNode& told) {
  const bool is_word =
      told.element_bytes == 1 || told.element_bytes == 2 || told.element_bytes == 4;
  if (!is_word || told.to % told.element_bytes != 0 || told.height != 1) return {};
  return [told, &card] {
    std::byte* const bytes = bytes_at(card, told.to, told.width * told.element_bytes);
    for (size_t i = 0; bytes != nullptr && i < told.width; ++i)
      std::memcpy(bytes + i * told.element_bytes, &told.value, told.element_bytes);
  };
}

}  // namespace

extern "C" {

int cuGraphCreate(GraphHandle* graph, unsigned) {
  const Entry entry("cuGraphCreate");
  if (entry.code() != 0) return entry.code();
  *graph = reinterpret_cast<GraphHandle>(machine().own<Graph>(machine().new_graph(nullptr)));
  ++machine().told.graphs;
  return 0;
}

int cuGraphDestroy(GraphHandle graph) {
  const Entry entry("cuGraphDestroy");
  if (entry.code() != 0) return entry.code();
  if (machine().owned.erase(&graph_of(graph)) == 0) return cuda::kInvalidValue;  // of a body
  std::erase_if(machine().conditions,
                [&](const auto& each) { return each.second.root == &graph_of(graph); });
  --machine().told.graphs;
  return 0;
}

int cuGraphAddKernelNode_v2(NodeHandle* node, GraphHandle graph, const NodeHandle* before,
                            size_t count, const KernelNode* kernel) {
  const Entry entry("cuGraphAddKernelNode_v2");
  if (entry.code() != 0) return entry.code();
  if (const int refusal = refusal_of(*kernel); refusal != 0) return refusal;
  return add(node, graph, before, count,
             reinterpret_cast<Function*>(kernel->function)->kernel->name, made_by(*kernel));
}

int cuGraphAddMemcpyNode(NodeHandle* node, GraphHandle graph, const NodeHandle* before,
                         size_t count, const CopyNode* copy, ContextHandle) {
  const Entry entry("cuGraphAddMemcpyNode");
  if (entry.code() != 0) return entry.code();
  return add(node, graph, before, count, name_of(*copy), made_by(entry.card(), *copy),
             memory_of(*copy));
}

int cuGraphAddMemsetNode(NodeHandle* node, GraphHandle graph, const NodeHandle* before,
                         size_t count, const FillNode* fill, ContextHandle) {
  const Entry entry("cuGraphAddMemsetNode");
  if (entry.code() != 0) return entry.code();
  return add(node, graph, before, count, "fill", made_by(entry.card(), *fill), {fill->to});
}

int cuGraphAddEmptyNode(NodeHandle* node, GraphHandle graph, const NodeHandle* before,
                        size_t count) {
  const Entry entry("cuGraphAddEmptyNode");
  if (entry.code() != 0) return entry.code();
  return add(node, graph, before, count, "join", [] {});
}

// A condition is some node's, and of a graph with conditional nodes there is one executable.
int cuGraphInstantiateWithFlags(GraphExecHandle* exec, GraphHandle handle, unsigned long long) {
  const Entry entry("cuGraphInstantiateWithFlags");
  if (entry.code() != 0) return entry.code();
  Graph& graph = graph_of(handle);
  if (!machine().owned.contains(&graph)) return cuda::kInvalidValue;
  for (const auto& [number, condition] : machine().conditions)
    if (condition.root == &graph && !condition.has_node) return cuda::kInvalidValue;
  if (has_conditions(graph) && *graph.executables > 0) return cuda::kInvalidValue;
  ++*graph.executables;
  auto* const made =
      machine().own<GraphExec>({.nodes = std::make_shared<Graph>(graph), .from = &graph});
  machine().executables.insert(made);
  *exec = reinterpret_cast<GraphExecHandle>(made);
  ++machine().told.graphs;
  return 0;
}

int cuGraphExecKernelNodeSetParams_v2(GraphExecHandle exec, NodeHandle node,
                                      const KernelNode* kernel) {
  const Entry entry("cuGraphExecKernelNodeSetParams_v2");
  if (entry.code() != 0) return entry.code();
  if (const int refusal = refusal_of(*kernel); refusal != 0) return refusal;
  return set(exec, node, made_by(*kernel));
}

int cuGraphExecMemcpyNodeSetParams(GraphExecHandle exec, NodeHandle node, const CopyNode* copy,
                                   ContextHandle) {
  const Entry entry("cuGraphExecMemcpyNodeSetParams");
  if (entry.code() != 0) return entry.code();
  // Both ends stay in the memory that they were in.
  const Graph& graph = *reinterpret_cast<GraphExec*>(exec)->nodes;
  if (const auto index = index_of(graph, node); index && graph.nodes[*index].name != name_of(*copy))
    return cuda::kInvalidValue;
  return set(exec, node, made_by(entry.card(), *copy), memory_of(*copy));
}

int cuGraphExecMemsetNodeSetParams(GraphExecHandle exec, NodeHandle node, const FillNode* fill,
                                   ContextHandle) {
  const Entry entry("cuGraphExecMemsetNodeSetParams");
  if (entry.code() != 0) return entry.code();
  return set(exec, node, made_by(entry.card(), *fill), {fill->to});
}

int cuGraphExecDestroy(GraphExecHandle exec) {
  const Entry entry("cuGraphExecDestroy");
  if (entry.code() != 0) return entry.code();
  --*reinterpret_cast<GraphExec*>(exec)->nodes->executables;
  machine().executables.erase(reinterpret_cast<GraphExec*>(exec));
  machine().owned.erase(reinterpret_cast<GraphExec*>(exec));
  --machine().told.graphs;
  return 0;
}

int cuGraphLaunch(GraphExecHandle exec, StreamHandle stream) {
  const Entry entry("cuGraphLaunch");
  if (entry.code() != 0) return entry.code();
  const GraphExec& launched = *reinterpret_cast<GraphExec*>(exec);
  const auto is_conditional = [](const GraphNode& node) { return node.body.has_value(); };
  // Bodies of conditional nodes live as long as their graph.
  if (std::ranges::any_of(launched.nodes->nodes, is_conditional) &&
      !machine().owned.contains(launched.from))
    return cuda::kInvalidValue;
  ++machine().told.graph_launches;
  // A launch keeps the graph: its destruction waits for nothing.
  machine().enqueue(*reinterpret_cast<Stream*>(stream),
                    [graph = launched.nodes] { machine().make_graph(*graph); });
  return 0;
}

}  // extern "C"
