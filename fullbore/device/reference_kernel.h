#pragma once
#include <span>
#include <vector>

#include "fullbore/device/kernel.h"

namespace fullbore {

/// One node by its op's reference, in double; rounded to the graph's dtypes where it is stored. For devices that are to
/// be right before they are fast, and whose memory the host can follow.
class ReferenceKernel final : public Kernel {
 public:
  ReferenceKernel(const Graph& graph, const Node& node);
  double nanoseconds() const override { return 1e6; }
  std::string description() const override;
  /// `operands`: inputs, which are left as they are, then outputs.
  void run(std::span<void* const> operands) const;

 private:
  Node node_;
  std::vector<TensorType> inputs_;
  std::vector<TensorType> outputs_;
};

/// Has such a kernel for every node.
class ReferenceCompiler final : public Compiler {
 public:
  std::unique_ptr<Kernel> compile(const Graph& graph, const Node& node, int workers) override;
};

}  // namespace fullbore
