#include "fullbore/device/cuda/executor/graph_nodes.h"

#include <algorithm>

namespace fullbore::cuda {
namespace {

KernelNode node_of(const Launch& launch) {
  return {.grid_x = launch.grid.x,
          .grid_y = launch.grid.y,
          .grid_z = launch.grid.z,
          .block_x = launch.block.x,
          .block_y = launch.block.y,
          .block_z = launch.block.z,
          .shared_bytes = static_cast<unsigned>(launch.dynamic_shared_bytes)};
}

// The driver looks at the pointer that is of the end's memory; the other one is kept for comparing nodes.
CopyEnd copy_end(const Context& context, Address address) {
  CopyEnd end;
  end.device = address.value;
  end.host = context.in_host(address);
  if (end.host != nullptr) end.memory = kMemoryOfHost;
  return end;
}

}  // namespace

std::vector<CopyNode> copy_nodes(const Context& context, Address from, Address to, int64_t bytes) {
  constexpr int64_t kMostBytes = int64_t{1} << 30;
  std::vector<CopyNode> nodes;
  for (int64_t offset = 0; offset < bytes; offset += kMostBytes) {
    CopyNode& node = nodes.emplace_back();
    node.from = copy_end(context, from + offset);
    node.to = copy_end(context, to + offset);
    node.width_bytes = static_cast<size_t>(std::min(kMostBytes, bytes - offset));
    node.from.pitch = node.to.pitch = node.width_bytes;
    node.from.height = node.to.height = 1;
  }
  return nodes;
}

FillNode fill_node(Address to, unsigned value, unsigned element_bytes, int64_t elements) {
  return {.to = to.value,
          .pitch = 0,
          .value = value,
          .element_bytes = element_bytes,
          .width = static_cast<size_t>(elements),
          .height = 1};
}

std::vector<FillNode> number_nodes(Address to, int64_t value) {
  const auto bits = static_cast<uint64_t>(value);
  return {fill_node(to, static_cast<unsigned>(bits), 4, 1),
          fill_node(to + 4, static_cast<unsigned>(bits >> 32), 4, 1)};
}

const KernelNode& KernelNodes::alone(const KernelCall& call, size_t launch) {
  const LoadedLaunch& loaded = call.kernel->launches[launch];
  node_ = node_of(*loaded.launch);
  node_.function = loaded.function;
  node_.arguments = arguments_.of(*context_, *loaded.launch, call.operands);
  return node_;
}

const KernelNode& KernelNodes::control(const ControlLaunch& control) {
  node_ = node_of(control.launch);
  node_.function = control.function;
  node_.arguments = arguments_.of(*context_, control.launch, control.operands);
  return node_;
}

const KernelNode& KernelNodes::merged(std::span<const KernelCall* const> calls,
                                      const LaunchKind& kind, size_t launch) {
  const Launch& first = *calls.front()->kernel->launches[launch].launch;
  const MergedCode& code = kind.codes[launch];
  node_ = node_of(first);
  std::vector<LaunchWithOperands> launches;
  for (const KernelCall* const call : calls) {
    const Launch& each = *call->kernel->launches[launch].launch;
    launches.push_back({&each, call->operands});
    node_.grid_x = std::max(node_.grid_x, each.grid.x);
    node_.grid_y = std::max(node_.grid_y, each.grid.y);
  }
  node_.grid_z = static_cast<unsigned>(calls.size());
  node_.function = context_->function(code.module, code.entry, first.dynamic_shared_bytes);
  table_ = merged_table(code, launches);
  table_argument_ = table_.data();
  node_.arguments = &table_argument_;
  return node_;
}

}  // namespace fullbore::cuda
