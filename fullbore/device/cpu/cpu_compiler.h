#pragma once
#include <memory>
#include <string>
#include <vector>

#include "fullbore/device/cpu/codegen/jit_kernel.h"
#include "fullbore/device/cpu/kernel.h"
#include "fullbore/ir/target.h"

namespace fullbore::cpu {

/// The kernels of this processor: those of kernel_list() first, then code compiled from kernel IR, then the op's
/// reference. Under CompileEffort::off the reference alone.
class CpuCompiler final : public Compiler {
 public:
  CpuCompiler();
  ~CpuCompiler() override;

  void compile_for(const Target& target) override;
  std::unique_ptr<Kernel> compile(const Graph& graph, const Node& node, int workers) override;
  void finish() override;
  std::vector<KernelFallback> fallbacks() const override;

 private:
  std::unique_ptr<Kernel> compile_matmul(KernelRequest& request);
  std::unique_ptr<Kernel> fall_back(const KernelRequest& request, const std::string& why_not);

  JitCompiler jit_;
  std::vector<KernelFallback> without_kernel_;
  CompileEffort effort_ = CompileEffort::full;
  bool row_invariant_ = false;
};

/// What passes may know of this processor and so many threads.
Target cpu_target(int threads);

}  // namespace fullbore::cpu
