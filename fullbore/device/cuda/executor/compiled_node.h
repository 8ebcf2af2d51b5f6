#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fullbore/device/cuda/cuda_kernel.h"

namespace fullbore::cuda {

/// A node's kernel with what the executor needs to know of the node: bytes of its operands (batches are copied to the
/// card), and how to name it when it fails.
class CompiledNode final : public Kernel {
 public:
  /// Empty `kernel`: there is nothing to do.
  CompiledNode(std::unique_ptr<CudaKernel> kernel, const Graph& graph, const Node& node);

  const std::vector<Launch>& launches() const;
  /// Behind the launches; null: there is none.
  const LibraryCall* library() const { return kernel_ ? kernel_->library() : nullptr; }
  /// Of a graph: launches, and what the library makes as one.
  size_t nodes() const { return launches().size() + (library() == nullptr ? 0 : 1); }
  /// How many operands are inputs; behind them are outputs, then scratch.
  size_t inputs() const { return inputs_; }
  /// Of inputs and outputs, in their order.
  const std::vector<int64_t>& operand_bytes() const { return operand_bytes_; }
  /// "tanh,mul f32[768, 512] in layer0.mlp (models/example.cpp:88)".
  const std::string& node() const { return node_; }

  double nanoseconds() const override { return kernel_ ? kernel_->nanoseconds() : 0; }
  int64_t scratch_bytes(int workers) const override {
    return kernel_ ? kernel_->scratch_bytes(workers) : 0;
  }
  bool may_alias(int input, int output) const override {
    return kernel_ && kernel_->may_alias(input, output);
  }
  std::string description() const override;

 private:
  std::unique_ptr<CudaKernel> kernel_;
  size_t inputs_ = 0;
  std::vector<int64_t> operand_bytes_;
  std::string node_;
};

}  // namespace fullbore::cuda
