#pragma once
#include <memory>
#include <string>

#include "fullbore/base/result.h"
#include "fullbore/device/cpu/codegen/codegen_target.h"
#include "fullbore/device/kernel_ir/kernel_ir.h"

namespace fullbore::jit {

/// Before anything else of LLVM's is used; may be called again.
void initialise_llvm();
/// The major version that we were built with.
int llvm_version();

/// Name of the function that a kernel's text becomes: equal texts, equal names.
std::string kernel_symbol(const std::string& kernel_text);

/// Kernels to relocatable object code for one processor. Holds LLVM's per-thread state: one per
/// thread.
class CodeGenerator {
 public:
  explicit CodeGenerator(const CodegenTarget& target);
  ~CodeGenerator();

  /// The bytes of an ELF object that defines kernel_symbol(text(kernel)). Failure: LLVM refuses what the emitter made.
  Result<std::string> compile(const KernelIr& kernel);
  /// LLVM's IR for it, before optimisation: for tests and the curious.
  std::string llvm_ir(const KernelIr& kernel);

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

/// Changes whenever the same kernel text may become other code.
inline constexpr int kCodegenVersion = 16;

}  // namespace fullbore::jit
