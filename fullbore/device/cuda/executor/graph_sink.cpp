#include "fullbore/device/cuda/executor/graph_sink.h"

#include <algorithm>
#include <array>
#include <utility>

#include "fullbore/base/check.h"

namespace fullbore::cuda {

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

NodeHandle GraphSink::make(const KernelCall& call, const std::vector<NodeHandle>& before) {
  const Driver& driver = context_->enter();
  NodeHandle last = nullptr;
  for (const LoadedLaunch& loaded : call.kernel->launches) {
    const Launch& launch = *loaded.launch;
    const KernelNode node{
        .function = loaded.function,
        .grid_x = launch.grid.x,
        .grid_y = launch.grid.y,
        .grid_z = launch.grid.z,
        .block_x = launch.block.x,
        .block_y = launch.block.y,
        .block_z = launch.block.z,
        .shared_bytes = static_cast<unsigned>(launch.dynamic_shared_bytes),
        .arguments = arguments_.of(launch, call.operands),
    };
    NodeHandle made = nullptr;
    const int code = last == nullptr ? driver.add_kernel.attempt(&made, graph_, before.data(),
                                                                 before.size(), &node)
                                     : driver.add_kernel.attempt(&made, graph_, &last, 1, &node);
    if (code != kSuccess)
      throw_launch_failure(driver.add_kernel.name(), code, *call.kernel, launch);
    last = made;
  }
  return last;
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

std::unique_ptr<LaunchableGraph> GraphSink::finish() {
  std::vector<NodeHandle> made;
  for (const Node& node : nodes_) {
    std::vector<NodeHandle> before;
    for (const int each : node.follows) before.push_back(made[static_cast<size_t>(each)]);
    made.push_back(std::visit([&](const auto& what) { return make(what, before); }, node.what));
  }
  return std::make_unique<LaunchableGraph>(context_, graph_);
}

}  // namespace fullbore::cuda
