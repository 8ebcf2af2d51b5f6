#pragma once
#include <memory>
#include <string>

#include "fullbore/base/result.h"
#include "fullbore/device/cuda/codegen/thread_mapping.h"
#include "fullbore/device/cuda/cuda_kernel.h"
#include "fullbore/device/kernel_ir/kernel_ir.h"

namespace fullbore::cuda {

/// A kernel's code and the names of its entries.
struct GeneratedCode {
  std::shared_ptr<const Module> module;
  std::string entry;
  std::string combines;  ///< of what follows it where the mapping splits; else ""
};

/// PTX of a kernel for compute capability 8.0 and later, by LLVM's NVPTX target; kept in memory by the kernel's text and
/// its mapping's. Failure: LLVM was built without that target, or refuses what the emitter made. For several threads.
Result<GeneratedCode> compile_to_ptx(const jit::KernelIr& kernel,
                                     const jit::LoopPlacement& placement,
                                     const ThreadMapping& mapping);

}  // namespace fullbore::cuda
