#include "fullbore/device/cuda/executor/graph_sink.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <utility>

#include "fullbore/base/check.h"
#include "fullbore/device/cuda/executor/direct_edges.h"
#include "fullbore/device/cuda/executor/merged_nodes.h"

namespace fullbore::cuda {
namespace {

// A launch of more blocks for each multiprocessor than this fills the card.
constexpr int kMostWaves = 4;
// Blocks of merged launches are as many as the largest has, and those that others do not have end at once: extents of one
// kind differ by eight times at most.
constexpr int kWidthsOfAKind = 3;

KernelNode node_of(const Launch& launch) {
  return {.grid_x = launch.grid.x,
          .grid_y = launch.grid.y,
          .grid_z = launch.grid.z,
          .block_x = launch.block.x,
          .block_y = launch.block.y,
          .block_z = launch.block.z,
          .shared_bytes = static_cast<unsigned>(launch.dynamic_shared_bytes)};
}

}  // namespace

LaunchableGraph::LaunchableGraph(std::shared_ptr<Context> context, GraphHandle graph)
    : context_(std::move(context)) {
  context_->enter().instantiate_graph(&handle_, graph, 0);
}
LaunchableGraph::~LaunchableGraph() {
  if (const Driver* const driver = context_->enter_to_destroy())
    driver->destroy_graph_exec.attempt(handle_);
}

GraphSink::GraphSink(std::shared_ptr<Context> context) : context_(std::move(context)) {
  context_->enter().make_graph(&graph_, 0);
}
GraphSink::~GraphSink() {
  if (const Driver* const driver = context_->enter_to_destroy())
    driver->destroy_graph.attempt(graph_);
}

void GraphSink::kernel(const LoadedKernel& kernel, std::span<const Address> operands) {
  if (kernel.launches.empty()) return;
  std::vector<MemoryAccess> accesses;
  const std::vector<int64_t>& bytes = kernel.node->operand_bytes();
  for (size_t i = 0; i < operands.size(); ++i) {
    const int64_t count = i < bytes.size() ? bytes[i] : kernel.node->scratch_bytes(1);
    accesses.push_back({.begin = operands[i].value,
                        .end = (operands[i] + count).value,
                        .is_written = i >= kernel.node->inputs()});
  }
  nodes_.push_back({.what = KernelCall{&kernel, {operands.begin(), operands.end()}},
                    .follows = hazards_.add(accesses)});
}

// A node copies a row, whose length the driver bounds by 2 GiB: longer ones in pieces, side by side.
void GraphSink::copy(Address from, Address to, int64_t bytes) {
  constexpr int64_t kMostBytes = int64_t{1} << 30;
  for (int64_t offset = 0; offset < bytes; offset += kMostBytes) {
    const int64_t count = std::min(kMostBytes, bytes - offset);
    CopyNode node;
    node.from.device = (from + offset).value;
    node.to.device = (to + offset).value;
    node.width_bytes = static_cast<size_t>(count);
    node.from.pitch = node.to.pitch = node.width_bytes;
    node.from.height = node.to.height = 1;
    const std::array accesses = {
        MemoryAccess{node.from.device, (from + offset + count).value, false},
        MemoryAccess{node.to.device, (to + offset + count).value, true}};
    nodes_.push_back({.what = node, .follows = hazards_.add(accesses)});
  }
}

void GraphSink::fill(Address to, unsigned value, unsigned element_bytes, int64_t elements) {
  const FillNode node{.to = to.value,
                      .pitch = 0,
                      .value = value,
                      .element_bytes = element_bytes,
                      .width = static_cast<size_t>(elements),
                      .height = 1};
  const std::array accesses = {
      MemoryAccess{to.value, (to + elements * static_cast<int64_t>(element_bytes)).value, true}};
  nodes_.push_back({.what = node, .follows = hazards_.add(accesses)});
}

void GraphSink::clear(Address to, int64_t bytes) {
  if (bytes > 0) fill(to, 0, 1, bytes);
}

// A node fills with words of 32 bits at most: both halves, side by side.
void GraphSink::set_number(Address to, int64_t value) {
  const auto bits = static_cast<uint64_t>(value);
  fill(to, static_cast<unsigned>(bits), 4, 1);
  fill(to + 4, static_cast<unsigned>(bits >> 32), 4, 1);
}

int64_t GraphSink::number(Address, int64_t) {
  FB_CHECK(false, "a graph does not know what a number in memory will be");
  return 0;
}

// What fills the card by itself gains nothing by waiting for others.
const GraphSink::Kind* GraphSink::kind_of(const Node& node) {
  const auto* const call = std::get_if<KernelCall>(&node.what);
  if (call == nullptr) return nullptr;
  const int64_t most_blocks = int64_t{kMostWaves} * context_->card().facts.multiprocessors;
  std::string text;
  for (const LoadedLaunch& loaded : call->kernel->launches) {
    const Launch& launch = *loaded.launch;
    const int64_t blocks = int64_t{launch.grid.x} * launch.grid.y * launch.grid.z;
    if (blocks > most_blocks) return nullptr;
    text += fmt::format("{} {} {} {} {} {} {};", fmt::ptr(loaded.function), launch.block.x,
                        launch.block.y, launch.block.z, launch.dynamic_shared_bytes,
                        std::bit_width(launch.grid.x) / kWidthsOfAKind,
                        std::bit_width(launch.grid.y) / kWidthsOfAKind);
  }
  const auto [found, is_new] = kinds_.try_emplace(text);
  Kind& kind = found->second;
  if (is_new) {
    kind.number = static_cast<int>(kinds_.size());
    kind.most = std::numeric_limits<int>::max();
    for (const LoadedLaunch& loaded : call->kernel->launches) {
      std::optional<MergedCode> code = merged_code(*loaded.launch);
      kind.most = std::min(kind.most, code ? static_cast<int>(code->most_launches) : 1);
      if (code) kind.codes.push_back(std::move(*code));
    }
  }
  return kind.most > 1 ? &kind : nullptr;
}

NodeHandle GraphSink::add(const KernelNode& node, const std::vector<NodeHandle>& before,
                          const LoadedKernel& kernel, const Launch& launch) {
  const Driver& driver = context_->enter();
  NodeHandle made = nullptr;
  const int code = driver.add_kernel.attempt(&made, graph_, before.data(), before.size(), &node);
  if (code != kSuccess) throw_launch_failure(driver.add_kernel.name(), code, kernel, launch);
  return made;
}

NodeHandle GraphSink::make(const KernelCall& call, const std::vector<NodeHandle>& before) {
  std::vector<NodeHandle> behind = before;
  for (const LoadedLaunch& loaded : call.kernel->launches) {
    KernelNode node = node_of(*loaded.launch);
    node.function = loaded.function;
    node.arguments = arguments_.of(*loaded.launch, call.operands);
    behind = {add(node, behind, *call.kernel, *loaded.launch)};
  }
  return behind.front();
}

NodeHandle GraphSink::make_merged(const std::vector<int>& merged,
                                  const std::vector<NodeHandle>& before) {
  const auto call = [&](int node) -> const KernelCall& {
    return std::get<KernelCall>(nodes_[static_cast<size_t>(node)].what);
  };
  const LoadedKernel& first = *call(merged.front()).kernel;
  const Kind& kind = *kind_of(nodes_[static_cast<size_t>(merged.front())]);
  std::vector<NodeHandle> behind = before;
  for (size_t i = 0; i < first.launches.size(); ++i) {
    const Launch& launch = *first.launches[i].launch;
    const MergedCode& code = kind.codes[i];
    KernelNode node = node_of(launch);
    std::vector<LaunchWithOperands> launches;
    for (const int each : merged) {
      launches.push_back({call(each).kernel->launches[i].launch, call(each).operands});
      node.grid_x = std::max(node.grid_x, launches.back().launch->grid.x);
      node.grid_y = std::max(node.grid_y, launches.back().launch->grid.y);
    }
    node.grid_z = static_cast<unsigned>(merged.size());
    node.function = context_->function(code.module, code.entry, launch.dynamic_shared_bytes);
    std::vector<std::byte> table = merged_table(code, launches);
    void* arguments[] = {table.data()};
    node.arguments = arguments;
    behind = {add(node, behind, first, launch)};
  }
  return behind.front();
}

NodeHandle GraphSink::make(const CopyNode& copy, const std::vector<NodeHandle>& before) {
  NodeHandle made = nullptr;
  context_->enter().add_copy(&made, graph_, before.data(), before.size(), &copy,
                             context_->handle());
  return made;
}

NodeHandle GraphSink::make(const FillNode& fill, const std::vector<NodeHandle>& before) {
  NodeHandle made = nullptr;
  context_->enter().add_fill(&made, graph_, before.data(), before.size(), &fill,
                             context_->handle());
  return made;
}

void GraphSink::load_merged(std::span<const std::vector<int>> groups) {
  std::vector<LoadRequest> entries;
  for (const std::vector<int>& merged : groups) {
    if (merged.size() < 2) continue;
    const Node& first = nodes_[static_cast<size_t>(merged.front())];
    const LoadedKernel& kernel = *std::get<KernelCall>(first.what).kernel;
    const Kind& kind = *kind_of(first);
    for (size_t i = 0; i < kernel.launches.size(); ++i)
      entries.push_back({kind.codes[i].module, kind.codes[i].entry,
                         kernel.launches[i].launch->dynamic_shared_bytes});
  }
  context_->load(entries);
}

std::unique_ptr<LaunchableGraph> GraphSink::finish() {
  std::vector<MergeableNode> mergeable;
  for (const Node& node : nodes_) {
    const Kind* const kind = kind_of(node);
    mergeable.push_back({.kind = kind == nullptr ? -1 : kind->number,
                         .most = kind == nullptr ? 1 : kind->most,
                         .follows = node.follows});
  }
  const std::vector<std::vector<int>> groups = merge_nodes(mergeable);
  load_merged(groups);
  std::vector<int> became(nodes_.size());
  std::vector<NodeHandle> made;
  DirectEdges edges;
  for (const std::vector<int>& merged : groups) {
    DirectEdges::Candidates candidates;
    for (const int node : merged) {
      for (const int each : nodes_[static_cast<size_t>(node)].follows)
        candidates.insert(became[static_cast<size_t>(each)]);
      became[static_cast<size_t>(node)] = static_cast<int>(made.size());
    }
    std::vector<NodeHandle> before;
    for (const int each : edges.add(candidates)) before.push_back(made[static_cast<size_t>(each)]);
    const Node& first = nodes_[static_cast<size_t>(merged.front())];
    made.push_back(
        merged.size() > 1
            ? make_merged(merged, before)
            : std::visit([&](const auto& what) { return make(what, before); }, first.what));
  }
  return std::make_unique<LaunchableGraph>(context_, graph_);
}

}  // namespace fullbore::cuda
