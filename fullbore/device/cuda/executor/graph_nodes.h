#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "fullbore/device/cuda/executor/launch_kinds.h"
#include "fullbore/device/cuda/executor/launch_sink.h"

/// Nodes of graphs as the driver is told them.
namespace fullbore::cuda {

struct KernelCall {
  const LoadedKernel* kernel = nullptr;
  std::vector<Place> operands;
};
/// A kernel that a loop needs. `decides`: the level of the graph (graph_maker.h) that is made if it says so; -1: none.
struct ControlCall {
  ControlLaunch control;
  int decides = -1;
};
/// A conditional node, whose body is a level of the graph.
struct ConditionalBody {
  int level = 0;
};
/// One node or, of a kernel of several launches, several that follow one another.
using NodeContent = std::variant<KernelCall, CopyNode, FillNode, ControlCall, ConditionalBody>;

/// A copy's nodes: each copies a row, whose length the driver bounds by 2 GiB. They may be side by side. Either end may be
/// State in the host's memory (Context::in_host).
std::vector<CopyNode> copy_nodes(const Context& context, Address from, Address to, int64_t bytes);
FillNode fill_node(Address to, unsigned value, unsigned element_bytes, int64_t elements);
/// A node fills with words of 32 bits at most: both halves, side by side.
std::vector<FillNode> number_nodes(Address to, int64_t value);

/// Fills in what kernels' nodes are. Each is valid until the next call.
class KernelNodes {
 public:
  explicit KernelNodes(std::shared_ptr<Context> context) : context_(std::move(context)) {}
  const KernelNode& alone(const KernelCall& call, size_t launch);
  const KernelNode& control(const ControlLaunch& control);
  /// Of calls of one kind as one launch (merged_code.h).
  const KernelNode& merged(std::span<const KernelCall* const> calls, const LaunchKind& kind,
                           size_t launch);

 private:
  std::shared_ptr<Context> context_;
  ArgumentTable arguments_;
  std::vector<std::byte> table_;
  void* table_argument_ = nullptr;
  KernelNode node_;
};

}  // namespace fullbore::cuda
