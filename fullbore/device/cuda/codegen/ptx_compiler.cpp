#include "fullbore/device/cuda/codegen/ptx_compiler.h"

#include <map>
#include <mutex>

#include "fullbore/base/hash.h"
#include "fullbore/device/codegen/emit_file.h"
#include "fullbore/device/cuda/codegen/ptx_emitter.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wall"
#pragma GCC diagnostic ignored "-Wextra"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wconversion"
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Target/TargetMachine.h>
#pragma GCC diagnostic pop

// Where LLVM was built without the target these are null.
extern "C" {
void LLVMInitializeNVPTXTargetInfo() __attribute__((weak));
void LLVMInitializeNVPTXTarget() __attribute__((weak));
void LLVMInitializeNVPTXTargetMC() __attribute__((weak));
void LLVMInitializeNVPTXAsmPrinter() __attribute__((weak));
}

namespace fullbore::cuda {
namespace {

// Programs that come and go must not pile up code for ever.
constexpr size_t kKeptModules = 4096;

#if LLVM_VERSION_MAJOR >= 18
constexpr auto kOptimisation = llvm::CodeGenOptLevel::Default;
#else
constexpr auto kOptimisation = llvm::CodeGenOpt::Default;
#endif

constexpr const char* kTriple = "nvptx64-nvidia-cuda";

const llvm::Target* target() {
  static const llvm::Target* const found = []() -> const llvm::Target* {
    if (LLVMInitializeNVPTXTargetInfo == nullptr || LLVMInitializeNVPTXTarget == nullptr ||
        LLVMInitializeNVPTXTargetMC == nullptr || LLVMInitializeNVPTXAsmPrinter == nullptr)
      return nullptr;
    const std::scoped_lock lock(jit::registration_mutex());
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    std::string error;
    return llvm::TargetRegistry::lookupTarget(jit::TargetTriple(kTriple), error);
  }();
  return found;
}

// Multiplications and additions stay apart, as on the CPU: TargetOptions' own choice.
std::unique_ptr<llvm::TargetMachine> make_machine() {
  return std::unique_ptr<llvm::TargetMachine>(target()->createTargetMachine(
      jit::TargetTriple(kTriple), "sm_80", "+ptx72", llvm::TargetOptions(), llvm::Reloc::PIC_,
      llvm::CodeModel::Small, kOptimisation));
}

struct Store {
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<const Module>, std::less<>> modules;
};

Store& store() {
  static Store kept;
  return kept;
}

}  // namespace

Result<GeneratedCode> compile_to_ptx(const jit::KernelIr& kernel,
                                     const jit::LoopPlacement& placement,
                                     const ThreadMapping& mapping) {
  const std::string text = mapping.text() + jit::text(kernel);
  GeneratedCode code;
  code.entry = "generated_" + hash_hex(hash_text(text)) + hash_hex(hash_text(text, 1));
  if (mapping.splits) code.combines = code.entry + "_combined";
  {
    const std::lock_guard lock(store().mutex);
    const auto known = store().modules.find(text);
    if (known != store().modules.end()) {
      code.module = known->second;
      return code;
    }
  }
  if (target() == nullptr) return Failure{"LLVM was built without its NVPTX target"};
  const std::unique_ptr<llvm::TargetMachine> machine = make_machine();
  jit::OwnedModule owned;
  owned.context = std::make_unique<llvm::LLVMContext>();
  owned.module = std::make_unique<llvm::Module>(code.entry, *owned.context);
  owned.module->setDataLayout(machine->createDataLayout());
  owned.module->setTargetTriple(jit::TargetTriple(kTriple));
  PtxEmitter(*owned.module, kernel, placement, mapping, code.entry, false).emit();
  if (mapping.splits)
    PtxEmitter(*owned.module, kernel, placement, mapping, code.combines, true).emit();
  Result<std::string> ptx = jit::emit_file(std::move(owned), *machine, jit::FileKind::assembly);
  if (!ptx.ok()) return Failure{ptx.error()};
  code.module =
      std::make_shared<const cuda::Module>(cuda::Module{code.entry, std::move(ptx).value()});
  const std::lock_guard lock(store().mutex);
  if (store().modules.size() >= kKeptModules) store().modules.clear();
  // Another thread may have made it meanwhile: the device loads one of them.
  code.module = store().modules.try_emplace(text, code.module).first->second;
  return code;
}

}  // namespace fullbore::cuda
