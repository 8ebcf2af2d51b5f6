#pragma once
#include <memory>
#include <string>
#include <vector>

#include "fullbore/device/cpu/codegen/jit_kernel.h"
#include "fullbore/device/cpu/kernel_list.h"

namespace fullbore {

/// The kernels of this processor: those of kernel_list() first, then code compiled from kernel IR.
class CpuBackend final : public Backend {
 public:
  CpuBackend();
  ~CpuBackend() override;

  Target target() const override;
  std::unique_ptr<Kernel> compile(const Graph& graph, const Node& node, int workers) override;
  void finish() override;

 private:
  std::unique_ptr<Kernel> compile_product(KernelRequest& request);

  JitCompiler jit_;
};

}  // namespace fullbore
