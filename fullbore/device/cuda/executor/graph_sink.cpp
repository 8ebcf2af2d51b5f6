#include "fullbore/device/cuda/executor/graph_sink.h"

#include <algorithm>
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

// Where many wait for many, a node in between takes fewer edges.
void GraphSink::barrier() {
  if (ends_.empty()) return;
  before_ = std::exchange(ends_, {});
  if (before_.size() < 2) return;
  NodeHandle join = nullptr;
  context_->enter().add_join(&join, graph_, before_.data(), before_.size());
  before_ = {join};
}

void GraphSink::kernel(const LoadedKernel& kernel, std::span<const Address> operands) {
  if (kernel.launches.empty()) return;
  const Driver& driver = context_->enter();
  NodeHandle last = nullptr;
  for (const LoadedLaunch& loaded : kernel.launches) {
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
        .arguments = arguments_.of(launch, operands),
    };
    NodeHandle made = nullptr;
    const int code = last == nullptr ? driver.add_kernel.attempt(&made, graph_, before_.data(),
                                                                 before_.size(), &node)
                                     : driver.add_kernel.attempt(&made, graph_, &last, 1, &node);
    if (code != kSuccess) throw_launch_failure(driver.add_kernel.name(), code, kernel, launch);
    last = made;
  }
  ends_.push_back(last);
  has_nodes_ = true;
}

// A node copies a row, whose length the driver bounds by 2 GiB: longer ones in pieces, side by side.
void GraphSink::copy(Address from, Address to, int64_t bytes) {
  constexpr int64_t kMostBytes = int64_t{1} << 30;
  for (int64_t offset = 0; offset < bytes; offset += kMostBytes) {
    CopyNode node;
    node.from.device = (from + offset).value;
    node.to.device = (to + offset).value;
    node.width_bytes = static_cast<size_t>(std::min(kMostBytes, bytes - offset));
    node.from.pitch = node.to.pitch = node.width_bytes;
    node.from.height = node.to.height = 1;
    NodeHandle made = nullptr;
    context_->enter().add_copy(&made, graph_, before_.data(), before_.size(), &node,
                               context_->handle());
    ends_.push_back(made);
    has_nodes_ = true;
  }
}

void GraphSink::fill(Address to, unsigned value, unsigned element_bytes, int64_t elements) {
  const FillNode node{.to = to.value,
                      .pitch = 0,
                      .value = value,
                      .element_bytes = element_bytes,
                      .width = static_cast<size_t>(elements),
                      .height = 1};
  NodeHandle made = nullptr;
  context_->enter().add_fill(&made, graph_, before_.data(), before_.size(), &node,
                             context_->handle());
  ends_.push_back(made);
  has_nodes_ = true;
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

std::unique_ptr<LaunchableGraph> GraphSink::finish() {
  return std::make_unique<LaunchableGraph>(context_, graph_);
}

}  // namespace fullbore::cuda
