// The fake driver's calls about streams that are captured, and about graphs that are nodes of others.
#include <algorithm>
#include <utility>

#include "fullbore/device/cuda/driver/handles.h"
#include "tests/fake_cuda/entry.h"
#include "tests/fake_cuda/graph_calls.h"

using fullbore::cuda::GraphExecHandle;
using fullbore::cuda::GraphHandle;
using fullbore::cuda::NodeHandle;
using fullbore::cuda::StreamHandle;
using fullbore::fake_cuda::add_node;
using fullbore::fake_cuda::Entry;
using fullbore::fake_cuda::Graph;
using fullbore::fake_cuda::graph_of;
using fullbore::fake_cuda::GraphExec;
using fullbore::fake_cuda::GraphNode;
using fullbore::fake_cuda::index_of;
using fullbore::fake_cuda::machine;
using fullbore::fake_cuda::Stream;
namespace cuda = fullbore::cuda;

namespace {

Stream& stream_of(StreamHandle handle) { return *reinterpret_cast<Stream*>(handle); }

bool has_conditions(const Graph& graph) {
  return std::ranges::any_of(graph.nodes,
                             [](const GraphNode& node) { return node.body.has_value(); });
}

/// Nodes of the same kinds with the same edges.
bool is_alike(const Graph& a, const Graph& b) {
  return std::ranges::equal(a.nodes, b.nodes, [](const GraphNode& left, const GraphNode& right) {
    return left.name == right.name && left.before == right.before;
  });
}

}  // namespace

extern "C" {

// The legacy modes, which forbid other threads to allocate meanwhile, nobody needs.
int cuStreamBeginCapture_v2(StreamHandle handle, int mode) {
  const Entry entry("cuStreamBeginCapture_v2");
  if (entry.code() != 0) return entry.code();
  Stream& stream = stream_of(handle);
  if (stream.captured || mode != cuda::kCaptureRelaxed) return cuda::kInvalidValue;
  stream.captured = std::make_shared<Graph>(machine().new_graph(nullptr));
  ++machine().captures;
  return 0;
}

int cuStreamEndCapture(StreamHandle handle, GraphHandle* graph) {
  const Entry entry("cuStreamEndCapture");
  Stream& stream = stream_of(handle);
  if (!stream.captured) return cuda::kInvalidValue;
  const std::shared_ptr<Graph> captured = std::exchange(stream.captured, nullptr);
  --machine().captures;
  if (entry.code() != 0) return entry.code();
  *graph = reinterpret_cast<GraphHandle>(machine().own<Graph>(*captured));
  ++machine().told.graphs;
  return 0;
}

int cuGraphGetNodes(GraphHandle graph, NodeHandle* nodes, size_t* count) {
  const Entry entry("cuGraphGetNodes");
  if (entry.code() != 0) return entry.code();
  const Graph& asked = graph_of(graph);
  for (size_t i = 0; nodes != nullptr && i < std::min(*count, asked.nodes.size()); ++i)
    nodes[i] = reinterpret_cast<NodeHandle>(asked.first + i + 1);
  *count = asked.nodes.size();
  return 0;
}

// A node has a copy of the graph.
int cuGraphAddChildGraphNode(NodeHandle* node, GraphHandle graph, const NodeHandle* before,
                             size_t count, GraphHandle child) {
  const Entry entry("cuGraphAddChildGraphNode");
  if (entry.code() != 0) return entry.code();
  const Graph& content = graph_of(child);
  if (!machine().owned.contains(&content) || has_conditions(content)) return cuda::kInvalidValue;
  GraphNode made{.name = "graph", .make = {}};
  made.child = std::make_shared<const Graph>(content);
  return add_node(node, graph_of(graph), before, count, std::move(made));
}

int cuGraphExecChildGraphNodeSetParams(GraphExecHandle handle, NodeHandle node, GraphHandle child) {
  const Entry entry("cuGraphExecChildGraphNodeSetParams");
  if (entry.code() != 0) return entry.code();
  auto& exec = *reinterpret_cast<GraphExec*>(handle);
  const Graph& content = graph_of(child);
  const auto index = index_of(*exec.nodes, node);
  if (!index || !machine().owned.contains(exec.from) || !machine().owned.contains(&content))
    return cuda::kInvalidValue;
  if (const auto& known = exec.nodes->nodes[*index].child; !known || !is_alike(*known, content))
    return cuda::kInvalidValue;
  if (exec.nodes.use_count() > 1) exec.nodes = std::make_shared<Graph>(*exec.nodes);
  exec.nodes->nodes[*index].child = std::make_shared<const Graph>(content);
  return 0;
}

}  // extern "C"
