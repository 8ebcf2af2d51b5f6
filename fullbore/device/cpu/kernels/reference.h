#pragma once
#include <span>
#include <string>

#include "fullbore/device/cpu/kernel.h"
#include "fullbore/device/reference_kernel.h"

namespace fullbore::cpu {

/// A node by its op's reference, on one worker: the kernel of engine.compile=off, and of nodes that have no other.
/// Unlike other kernels it allocates while it runs.
class ReferenceCpuKernel final : public CpuKernel {
 public:
  ReferenceCpuKernel(const Graph& graph, const Node& node)
      : reference_(graph, node), operands_(node.inputs.size() + node.outputs.size()) {}

  int64_t items() const override { return 1; }
  /// Not worth spreading: launches stay in the graph's order on one worker.
  double nanoseconds() const override { return 0; }
  std::string description() const override { return reference_.description(); }
  void run(void* const* operands, int64_t, int64_t, int) const override {
    reference_.run({operands, operands_});
  }

 private:
  ReferenceKernel reference_;
  size_t operands_;
};

}  // namespace fullbore::cpu
