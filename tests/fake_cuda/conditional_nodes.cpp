// The fake driver's calls about conditional nodes.
#include <memory>
#include <utility>

#include "tests/fake_cuda/entry.h"
#include "tests/fake_cuda/graph_calls.h"

using fullbore::cuda::ConditionalNode;
using fullbore::cuda::ConditionHandle;
using fullbore::cuda::ContextHandle;
using fullbore::cuda::GraphHandle;
using fullbore::cuda::NodeHandle;
using fullbore::fake_cuda::add_node;
using fullbore::fake_cuda::Condition;
using fullbore::fake_cuda::ConditionalBody;
using fullbore::fake_cuda::current_card;
using fullbore::fake_cuda::Entry;
using fullbore::fake_cuda::Graph;
using fullbore::fake_cuda::graph_of;
using fullbore::fake_cuda::machine;
namespace cuda = fullbore::cuda;

namespace {

Graph* root_of(Graph& graph) { return graph.root == nullptr ? &graph : graph.root; }

bool is_of_current_card(ContextHandle context) {
  return reinterpret_cast<uintptr_t>(context) == static_cast<uintptr_t>(current_card) + 1;
}

bool is_all_zero(const ConditionalNode& node) {
  for (const uint64_t each : node.unused)
    if (each != 0) return false;
  return node.reserved[0] == 0 && node.reserved[1] == 0 && node.reserved[2] == 0;
}

}  // namespace

extern "C" {

int cuGraphConditionalHandleCreate(ConditionHandle* handle, GraphHandle graph,
                                   ContextHandle context, unsigned at_launch, unsigned flags) {
  const Entry entry("cuGraphConditionalHandleCreate");
  if (entry.code() != 0) return entry.code();
  if (flags > cuda::kConditionAtLaunch || !is_of_current_card(context)) return cuda::kInvalidValue;
  Condition made{.graph = &graph_of(graph), .root = root_of(graph_of(graph)), .at_launch = {}};
  if (flags == cuda::kConditionAtLaunch) made.at_launch = at_launch;
  static uint64_t last = 0x5eed'0000'0000;
  *handle = ++last;
  machine().conditions[last] = made;
  return 0;
}

// With the layout of that call, of nodes that are conditional.
int cuGraphAddNode(NodeHandle* node, GraphHandle handle, const NodeHandle* before, size_t count,
                   ConditionalNode* told) {
  const Entry entry("cuGraphAddNode");
  if (entry.code() != 0) return entry.code();
  Graph& graph = graph_of(handle);
  const auto condition = machine().conditions.find(told->condition);
  if (told->type != cuda::kConditionalNode || told->kind != 0 || told->body_count != 1 ||
      !is_all_zero(*told) || !is_of_current_card(told->context) ||
      condition == machine().conditions.end() || condition->second.graph != &graph ||
      condition->second.has_node)
    return cuda::kInvalidValue;
  ConditionalBody body{.condition = told->condition,
                       .at_launch = condition->second.at_launch,
                       .graph = std::make_shared<Graph>(machine().new_graph(root_of(graph))),
                       .handle = {}};
  body.handle = std::make_shared<Graph*>(body.graph.get());
  GraphHandle* const bodies = reinterpret_cast<GraphHandle*>(body.handle.get());
  const int code = add_node(node, graph, before, count,
                            {.name = "conditional", .make = {}, .body = std::move(body)});
  if (code != 0) return code;
  condition->second.has_node = true;
  told->bodies = bodies;
  return 0;
}

}  // extern "C"
