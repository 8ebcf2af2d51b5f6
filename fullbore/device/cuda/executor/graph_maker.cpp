#include "fullbore/device/cuda/executor/graph_maker.h"

#include <utility>

#include "fullbore/device/cuda/executor/direct_edges.h"
#include "fullbore/device/cuda/executor/library_calls.h"
#include "fullbore/device/cuda/executor/merged_nodes.h"
#include "fullbore/device/cuda/makers/launching.h"

namespace fullbore::cuda {
namespace {

class GraphMaker {
 public:
  GraphMaker(const std::shared_ptr<Context>& context, LaunchKinds& kinds,
             std::span<const GraphLevel> levels, GraphContents& contents)
      : context_(context),
        kinds_(kinds),
        levels_(levels),
        contents_(contents),
        kernel_nodes_(context),
        merged_(levels.size()),
        conditions_(levels.size()) {}

  void make_all() {
    for (size_t level = 0; level < levels_.size(); ++level) merge(level);
    load_merged();
    make_level(0, contents_.graph->get());
  }

 private:
  /// Nodes of a level that became one each, by their numbers within it; GraphContents::made has them from `first_made` on.
  struct MergedLevel {
    std::vector<std::vector<int>> groups;
    size_t first_made = 0;
  };

  NodeContent& content(int node) { return contents_.nodes[static_cast<size_t>(node)]; }
  const LaunchKind* kind_of(const NodeContent& node) {
    const auto* const call = std::get_if<KernelCall>(&node);
    return call == nullptr ? nullptr : kinds_.of(*call->kernel);
  }

  void merge(size_t number);
  void load_merged();
  void make_level(size_t number, GraphHandle graph);
  std::vector<NodeHandle> make(GraphHandle graph, const GraphContents::Made& made,
                               std::vector<NodeHandle> before);
  std::vector<NodeHandle> make_calls(GraphHandle graph, const GraphContents::Made& made,
                                     std::vector<NodeHandle> before);
  NodeHandle make_control(GraphHandle graph, ControlCall& call, std::span<const NodeHandle> before);
  NodeHandle make_conditional(GraphHandle graph, size_t level, std::span<const NodeHandle> before);

  const std::shared_ptr<Context>& context_;
  LaunchKinds& kinds_;
  std::span<const GraphLevel> levels_;
  GraphContents& contents_;
  KernelNodes kernel_nodes_;
  std::vector<MergedLevel> merged_;
  std::vector<ConditionHandle> conditions_;  ///< by the level that they decide about
};

void GraphMaker::merge(size_t number) {
  const GraphLevel& level = levels_[number];
  std::vector<MergeableNode> mergeable;
  for (size_t i = 0; i < level.nodes.size(); ++i) {
    const LaunchKind* const kind = kind_of(content(level.nodes[i]));
    mergeable.push_back({.kind = kind == nullptr ? -1 : kind->number,
                         .most = kind == nullptr ? 1 : kind->most,
                         .follows = level.follows[i]});
  }
  MergedLevel& merged = merged_[number];
  merged.first_made = contents_.made.size();
  merged.groups = merge_nodes(mergeable);
  for (const std::vector<int>& group : merged.groups) {
    GraphContents::Made& made = contents_.made.emplace_back();
    for (const int member : group) made.members.push_back(level.nodes[static_cast<size_t>(member)]);
    if (group.size() > 1) made.kind = kind_of(content(made.members.front()));
  }
}

void GraphMaker::load_merged() {
  std::vector<LoadRequest> entries;
  for (const GraphContents::Made& made : contents_.made) {
    if (made.kind == nullptr) continue;
    const LoadedKernel& kernel = *std::get<KernelCall>(content(made.members.front())).kernel;
    for (size_t i = 0; i < kernel.launches.size(); ++i)
      entries.push_back({made.kind->codes[i].module, made.kind->codes[i].entry,
                         kernel.launches[i].launch->dynamic_shared_bytes});
  }
  context_->load(entries);
}

void GraphMaker::make_level(size_t number, GraphHandle graph) {
  const GraphLevel& level = levels_[number];
  const MergedLevel& merged = merged_[number];
  std::vector<int> became(level.nodes.size());
  DirectEdges edges;
  for (size_t i = 0; i < merged.groups.size(); ++i) {
    DirectEdges::Candidates candidates;
    for (const int member : merged.groups[i]) {
      for (const int each : level.follows[static_cast<size_t>(member)])
        candidates.insert(became[static_cast<size_t>(each)]);
      became[static_cast<size_t>(member)] = static_cast<int>(i);
    }
    std::vector<NodeHandle> before;
    for (const int each : edges.add(candidates))
      before.push_back(
          contents_.made[merged.first_made + static_cast<size_t>(each)].handles.back());
    GraphContents::Made& made = contents_.made[merged.first_made + i];
    made.handles = make(graph, made, std::move(before));
  }
}

std::vector<NodeHandle> GraphMaker::make(GraphHandle graph, const GraphContents::Made& made,
                                         std::vector<NodeHandle> before) {
  NodeContent& first = content(made.members.front());
  if (std::holds_alternative<KernelCall>(first)) return make_calls(graph, made, std::move(before));
  if (auto* const call = std::get_if<ControlCall>(&first))
    return {make_control(graph, *call, before)};
  if (const auto* const body = std::get_if<ConditionalBody>(&first))
    return {make_conditional(graph, static_cast<size_t>(body->level), before)};
  const Driver& driver = context_->enter();
  NodeHandle handle = nullptr;
  if (const auto* const copy = std::get_if<CopyNode>(&first))
    driver.add_copy(&handle, graph, before.data(), before.size(), copy, context_->handle());
  else
    driver.add_fill(&handle, graph, before.data(), before.size(), &std::get<FillNode>(first),
                    context_->handle());
  return {handle};
}

std::vector<NodeHandle> GraphMaker::make_calls(GraphHandle graph, const GraphContents::Made& made,
                                               std::vector<NodeHandle> before) {
  const Driver& driver = context_->enter();
  std::vector<const KernelCall*> calls;
  for (const int member : made.members) calls.push_back(&std::get<KernelCall>(content(member)));
  const LoadedKernel& kernel = *calls.front()->kernel;
  std::vector<NodeHandle> handles;
  for (size_t i = 0; i < kernel.launches.size(); ++i) {
    const KernelNode& node = made.kind == nullptr ? kernel_nodes_.alone(*calls.front(), i)
                                                  : kernel_nodes_.merged(calls, *made.kind, i);
    NodeHandle handle = nullptr;
    const int code = driver.add_kernel.attempt(&handle, graph, before.data(), before.size(), &node);
    if (code != kSuccess)
      throw_launch_failure(driver.add_kernel.name(), code, kernel, *kernel.launches[i].launch);
    handles.push_back(handle);
    before = {handle};
  }
  if (kernel.node->library() == nullptr) return handles;
  const std::unique_ptr<OwnedGraph> call = captured_call(context_, *calls.front());
  NodeHandle handle = nullptr;
  driver.add_graph(&handle, graph, before.data(), before.size(), call->get());
  handles.push_back(handle);
  return handles;
}

// A condition is of the graph that has the conditional node, which is that of the decision too.
NodeHandle GraphMaker::make_control(GraphHandle graph, ControlCall& call,
                                    std::span<const NodeHandle> before) {
  const Driver& driver = context_->enter();
  if (call.decides >= 0) {
    ConditionHandle& condition = conditions_[static_cast<size_t>(call.decides)];
    (*driver.make_condition)(&condition, graph, context_->handle(), 0, kConditionAtLaunch);
    call.control.launch.arguments.push_back(value(condition));
  }
  NodeHandle handle = nullptr;
  driver.add_kernel(&handle, graph, before.data(), before.size(),
                    &kernel_nodes_.control(call.control));
  return handle;
}

NodeHandle GraphMaker::make_conditional(GraphHandle graph, size_t level,
                                        std::span<const NodeHandle> before) {
  ConditionalNode node{.condition = conditions_[level], .context = context_->handle()};
  NodeHandle handle = nullptr;
  (*context_->enter().add_conditional)(&handle, graph, before.data(), before.size(), &node);
  make_level(level, node.bodies[0]);
  return handle;
}

}  // namespace

void make_nodes(const std::shared_ptr<Context>& context, LaunchKinds& kinds,
                std::span<const GraphLevel> levels, GraphContents& contents) {
  GraphMaker(context, kinds, levels, contents).make_all();
}

}  // namespace fullbore::cuda
