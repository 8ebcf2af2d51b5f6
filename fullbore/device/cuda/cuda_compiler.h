#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fullbore/device/cuda/driver/context.h"
#include "fullbore/device/cuda/executor/compiled_node.h"
#include "fullbore/device/kernel.h"
#include "fullbore/device/overlapping_launches.h"
#include "fullbore/ir/target.h"

namespace fullbore::cuda {

/// Kernels for a card: hand-written ones first, then code that is generated for the node. There is no reference to
/// fall back on: an op or dtype without a kernel is a UsageError that says why.
class CudaCompiler final : public Compiler, public OverlappingLaunches {
 public:
  explicit CudaCompiler(std::shared_ptr<Context> context)
      : card_(context->card().facts), context_(std::move(context)) {}
  /// For a card that is not at hand: kernels to plan with, which nothing can launch.
  explicit CudaCompiler(const CardFacts& card) : card_(card) {}

  void compile_for(const Target& target) override;
  std::unique_ptr<Kernel> compile(const Graph& graph, const Node& node, int workers) override;
  /// Has the driver compile the PTX, so that no step waits for it.
  void finish() override;
  /// Of engine.cublaslt: why the library is not used, or for which matmuls it is not.
  std::vector<std::string> notices() const override;
  int64_t small_value_bytes() const override { return int64_t{4} << 20; }

 private:
  std::unique_ptr<CudaKernel> library_kernel(const Request& request);

  CardFacts card_;
  std::shared_ptr<Context> context_;  ///< null: there is no card
  CompileEffort effort_ = CompileEffort::full;
  std::vector<Launch> launches_;  ///< of all kernels, to be loaded
  LibraryMatmuls* library_ = nullptr;
  std::string no_library_;                       ///< why, where it is asked for; "": it is used
  std::map<std::string, std::string> declined_;  ///< matmuls that have kernels of our own, and why
};

/// What passes may know of a card.
Target cuda_target(const CardFacts& card);

}  // namespace fullbore::cuda
