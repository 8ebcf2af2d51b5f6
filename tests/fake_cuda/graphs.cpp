// The fake driver's calls about graphs.
#include <fmt/format.h>

#include <cstring>
#include <functional>
#include <utility>

#include "fullbore/device/cuda/driver/handles.h"
#include "tests/fake_cuda/entry.h"
#include "tests/fake_cuda/kernel_launch.h"

using fullbore::cuda::ContextHandle;
using fullbore::cuda::CopyNode;
using fullbore::cuda::FillNode;
using fullbore::cuda::GraphExecHandle;
using fullbore::cuda::GraphHandle;
using fullbore::cuda::KernelNode;
using fullbore::cuda::NodeHandle;
using fullbore::cuda::StreamHandle;
using fullbore::fake_cuda::Card;
using fullbore::fake_cuda::Entry;
using fullbore::fake_cuda::Function;
using fullbore::fake_cuda::Graph;
using fullbore::fake_cuda::GraphExec;
using fullbore::fake_cuda::GraphNode;
using fullbore::fake_cuda::machine;
using fullbore::fake_cuda::Stream;
namespace cuda = fullbore::cuda;

namespace {

Graph& graph_of(GraphHandle handle) { return *reinterpret_cast<Graph*>(handle); }

// A node is told by its number, from 1 on.
int add(NodeHandle* node, GraphHandle handle, const NodeHandle* before, size_t count,
        std::function<void()> make) {
  if (!make) return cuda::kInvalidValue;
  Graph& graph = graph_of(handle);
  GraphNode made{.make = std::move(make), .before = {}};
  for (size_t i = 0; i < count; ++i) {
    const auto number = reinterpret_cast<uintptr_t>(before[i]);
    if (number < 1 || number > graph.nodes.size()) return cuda::kInvalidValue;
    made.before.push_back(number - 1);
  }
  graph.nodes.push_back(std::move(made));
  *node = reinterpret_cast<NodeHandle>(graph.nodes.size());
  return 0;
}

// What was launched before keeps the nodes that it had. The handle is of the graph that it was made of, and no longer one
// when that is destroyed.
int set(GraphExecHandle handle, NodeHandle node, std::function<void()> make) {
  auto& exec = *reinterpret_cast<GraphExec*>(handle);
  const auto number = reinterpret_cast<uintptr_t>(node);
  if (!make || !machine().owned.contains(exec.from) || number < 1 ||
      number > exec.nodes->nodes.size())
    return cuda::kInvalidValue;
  if (exec.nodes.use_count() > 1) exec.nodes = std::make_shared<Graph>(*exec.nodes);
  exec.nodes->nodes[number - 1].make = std::move(make);
  return 0;
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

std::function<void()> made_by(Card& card, const CopyNode& copy) {
  if (copy.from.memory != cuda::kMemoryOfDevice || copy.to.memory != cuda::kMemoryOfDevice ||
      copy.height != 1 || copy.depth != 1)
    return {};
  const uint64_t from = copy.from.device, to = copy.to.device;
  const size_t bytes = copy.width_bytes;
  return [=, &card] {
    const std::byte* const source = bytes_at(card, from, bytes);
    std::byte* const target = bytes_at(card, to, bytes);
    if (source != nullptr && target != nullptr) std::memmove(target, source, bytes);
  };
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
  *graph = reinterpret_cast<GraphHandle>(machine().own<Graph>());
  ++machine().told.graphs;
  return 0;
}

int cuGraphDestroy(GraphHandle graph) {
  const Entry entry("cuGraphDestroy");
  if (entry.code() != 0) return entry.code();
  machine().owned.erase(&graph_of(graph));
  --machine().told.graphs;
  return 0;
}

int cuGraphAddKernelNode_v2(NodeHandle* node, GraphHandle graph, const NodeHandle* before,
                            size_t count, const KernelNode* kernel) {
  const Entry entry("cuGraphAddKernelNode_v2");
  if (entry.code() != 0) return entry.code();
  return add(node, graph, before, count, made_by(*kernel));
}

int cuGraphAddMemcpyNode(NodeHandle* node, GraphHandle graph, const NodeHandle* before,
                         size_t count, const CopyNode* copy, ContextHandle) {
  const Entry entry("cuGraphAddMemcpyNode");
  if (entry.code() != 0) return entry.code();
  return add(node, graph, before, count, made_by(entry.card(), *copy));
}

int cuGraphAddMemsetNode(NodeHandle* node, GraphHandle graph, const NodeHandle* before,
                         size_t count, const FillNode* fill, ContextHandle) {
  const Entry entry("cuGraphAddMemsetNode");
  if (entry.code() != 0) return entry.code();
  return add(node, graph, before, count, made_by(entry.card(), *fill));
}

int cuGraphAddEmptyNode(NodeHandle* node, GraphHandle graph, const NodeHandle* before,
                        size_t count) {
  const Entry entry("cuGraphAddEmptyNode");
  if (entry.code() != 0) return entry.code();
  return add(node, graph, before, count, [] {});
}

int cuGraphInstantiateWithFlags(GraphExecHandle* exec, GraphHandle graph, unsigned long long) {
  const Entry entry("cuGraphInstantiateWithFlags");
  if (entry.code() != 0) return entry.code();
  *exec = reinterpret_cast<GraphExecHandle>(machine().own<GraphExec>(
      {.nodes = std::make_shared<Graph>(graph_of(graph)), .from = &graph_of(graph)}));
  ++machine().told.graphs;
  return 0;
}

int cuGraphExecKernelNodeSetParams_v2(GraphExecHandle exec, NodeHandle node,
                                      const KernelNode* kernel) {
  const Entry entry("cuGraphExecKernelNodeSetParams_v2");
  if (entry.code() != 0) return entry.code();
  return set(exec, node, made_by(*kernel));
}

int cuGraphExecMemcpyNodeSetParams(GraphExecHandle exec, NodeHandle node, const CopyNode* copy,
                                   ContextHandle) {
  const Entry entry("cuGraphExecMemcpyNodeSetParams");
  if (entry.code() != 0) return entry.code();
  return set(exec, node, made_by(entry.card(), *copy));
}

int cuGraphExecMemsetNodeSetParams(GraphExecHandle exec, NodeHandle node, const FillNode* fill,
                                   ContextHandle) {
  const Entry entry("cuGraphExecMemsetNodeSetParams");
  if (entry.code() != 0) return entry.code();
  return set(exec, node, made_by(entry.card(), *fill));
}

int cuGraphExecDestroy(GraphExecHandle exec) {
  const Entry entry("cuGraphExecDestroy");
  if (entry.code() != 0) return entry.code();
  machine().owned.erase(reinterpret_cast<GraphExec*>(exec));
  --machine().told.graphs;
  return 0;
}

int cuGraphLaunch(GraphExecHandle exec, StreamHandle stream) {
  const Entry entry("cuGraphLaunch");
  if (entry.code() != 0) return entry.code();
  ++machine().told.graph_launches;
  // A launch keeps the graph: its destruction waits for nothing.
  machine().enqueue(
      *reinterpret_cast<Stream*>(stream),
      [graph = reinterpret_cast<GraphExec*>(exec)->nodes] { machine().make_graph(graph->nodes); });
  return 0;
}

}  // extern "C"
