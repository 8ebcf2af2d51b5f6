#include "fullbore/device/cuda/executor/graph_sink.h"

#include <utility>

#include "fullbore/base/check.h"
#include "fullbore/device/cuda/executor/direct_edges.h"
#include "fullbore/device/cuda/executor/merged_nodes.h"

namespace fullbore::cuda {
GraphSink::GraphSink(std::shared_ptr<Context> context, LaunchKinds& kinds)
    : context_(std::move(context)), kinds_(kinds), kernel_nodes_(context_) {
  contents_.graph = std::make_unique<OwnedGraph>(context_);
}

void GraphSink::touch(const Place& place, int64_t bytes, bool is_written) {
  moves_ |= place.moves();
  const auto touch_from = [&](Address address) {
    accesses_.push_back({.begin = (address + place.least).value,
                         .end = (address + place.most + bytes).value,
                         .is_written = is_written});
  };
  touch_from(place.address);
  for (const Address other : place.others) touch_from(other);
}

void GraphSink::add(NodeContent content) {
  contents_.nodes.push_back(std::move(content));
  follows_.push_back(hazards_.add(accesses_));
  accesses_.clear();
}

void GraphSink::kernel(const LoadedKernel& kernel, std::span<const Place> operands) {
  if (kernel.launches.empty()) return;
  const std::vector<int64_t>& bytes = kernel.node->operand_bytes();
  for (size_t i = 0; i < operands.size(); ++i)
    touch(operands[i], i < bytes.size() ? bytes[i] : kernel.node->scratch_bytes(1),
          i >= kernel.node->inputs());
  add(KernelCall{&kernel, {operands.begin(), operands.end()}});
}

void GraphSink::copy(const Place& from, const Place& to, int64_t bytes) {
  int64_t copied = 0;
  for (const CopyNode& node : copy_nodes(from.address, to.address, bytes)) {
    const auto count = static_cast<int64_t>(node.width_bytes);
    touch(behind(from, copied), count, false);
    touch(behind(to, copied), count, true);
    add(node);
    copied += count;
  }
}

void GraphSink::clear(const Place& to, int64_t bytes) {
  if (bytes <= 0) return;
  touch(to, bytes, true);
  add(fill_node(to.address, 0, 1, bytes));
}

void GraphSink::set_number(const Place& to, int64_t value) {
  int64_t filled = 0;
  for (const FillNode& node : number_nodes(to.address, value)) {
    touch(behind(to, filled), node.element_bytes, true);
    add(node);
    filled += node.element_bytes;
  }
}

int64_t GraphSink::number(const Place&, int64_t) {
  FB_CHECK(false, "a graph does not know what a number in memory will be");
  return 0;
}

void GraphSink::graph(LaunchableGraph&, int, int) {
  FB_CHECK(false, "a graph has no graphs in it");
}

void GraphSink::load_merged() {
  std::vector<LoadRequest> entries;
  for (const GraphContents::Made& made : contents_.made) {
    if (made.kind == nullptr) continue;
    const NodeContent& first = contents_.nodes[static_cast<size_t>(made.members.front())];
    const LoadedKernel& kernel = *std::get<KernelCall>(first).kernel;
    for (size_t i = 0; i < kernel.launches.size(); ++i)
      entries.push_back({made.kind->codes[i].module, made.kind->codes[i].entry,
                         kernel.launches[i].launch->dynamic_shared_bytes});
  }
  context_->load(entries);
}

std::vector<NodeHandle> GraphSink::make(const GraphContents::Made& made,
                                        std::vector<NodeHandle> before) {
  const Driver& driver = context_->enter();
  const NodeContent& first = contents_.nodes[static_cast<size_t>(made.members.front())];
  NodeHandle handle = nullptr;
  if (const auto* const copy = std::get_if<CopyNode>(&first)) {
    driver.add_copy(&handle, contents_.graph->get(), before.data(), before.size(), copy,
                    context_->handle());
    return {handle};
  }
  if (const auto* const fill = std::get_if<FillNode>(&first)) {
    driver.add_fill(&handle, contents_.graph->get(), before.data(), before.size(), fill,
                    context_->handle());
    return {handle};
  }
  std::vector<const KernelCall*> calls;
  for (const int member : made.members)
    calls.push_back(&std::get<KernelCall>(contents_.nodes[static_cast<size_t>(member)]));
  const LoadedKernel& kernel = *calls.front()->kernel;
  std::vector<NodeHandle> handles;
  for (size_t i = 0; i < kernel.launches.size(); ++i) {
    const KernelNode& node = made.kind == nullptr ? kernel_nodes_.alone(*calls.front(), i)
                                                  : kernel_nodes_.merged(calls, *made.kind, i);
    const int code = driver.add_kernel.attempt(&handle, contents_.graph->get(), before.data(),
                                               before.size(), &node);
    if (code != kSuccess)
      throw_launch_failure(driver.add_kernel.name(), code, kernel, *kernel.launches[i].launch);
    handles.push_back(handle);
    before = {handle};
  }
  return handles;
}

std::unique_ptr<LaunchableGraph> GraphSink::finish(bool moves) {
  const auto kind_of = [&](const NodeContent& node) {
    const auto* const call = std::get_if<KernelCall>(&node);
    return call == nullptr ? nullptr : kinds_.of(*call->kernel);
  };
  std::vector<MergeableNode> mergeable;
  for (size_t i = 0; i < contents_.nodes.size(); ++i) {
    const LaunchKind* const kind = kind_of(contents_.nodes[i]);
    mergeable.push_back({.kind = kind == nullptr ? -1 : kind->number,
                         .most = kind == nullptr ? 1 : kind->most,
                         .follows = follows_[i]});
  }
  for (std::vector<int>& members : merge_nodes(mergeable)) {
    const NodeContent& first = contents_.nodes[static_cast<size_t>(members.front())];
    const LaunchKind* const kind = members.size() > 1 ? kind_of(first) : nullptr;
    contents_.made.push_back({.members = std::move(members), .kind = kind, .handles = {}});
  }
  load_merged();
  std::vector<int> became(contents_.nodes.size());
  DirectEdges edges;
  for (size_t i = 0; i < contents_.made.size(); ++i) {
    GraphContents::Made& made = contents_.made[i];
    DirectEdges::Candidates candidates;
    for (const int member : made.members) {
      for (const int each : follows_[static_cast<size_t>(member)])
        candidates.insert(became[static_cast<size_t>(each)]);
      became[static_cast<size_t>(member)] = static_cast<int>(i);
    }
    std::vector<NodeHandle> before;
    for (const int each : edges.add(candidates))
      before.push_back(contents_.made[static_cast<size_t>(each)].handles.back());
    made.handles = make(made, std::move(before));
  }
  return std::make_unique<LaunchableGraph>(context_, std::move(contents_), moves);
}

}  // namespace fullbore::cuda
