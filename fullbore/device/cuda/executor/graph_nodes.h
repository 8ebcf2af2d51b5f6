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
/// One node or, of a kernel of several launches, several that follow one another.
using NodeContent = std::variant<KernelCall, CopyNode, FillNode>;

/// A copy's nodes: each copies a row, whose length the driver bounds by 2 GiB. They may be side by side.
std::vector<CopyNode> copy_nodes(Address from, Address to, int64_t bytes);
FillNode fill_node(Address to, unsigned value, unsigned element_bytes, int64_t elements);
/// A node fills with words of 32 bits at most: both halves, side by side.
std::vector<FillNode> number_nodes(Address to, int64_t value);

/// Fills in what kernels' nodes are. Each is valid until the next call.
class KernelNodes {
 public:
  explicit KernelNodes(std::shared_ptr<Context> context) : context_(std::move(context)) {}
  const KernelNode& alone(const KernelCall& call, size_t launch);
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
