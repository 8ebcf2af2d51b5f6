#include "fullbore/device/cpu/codegen/code_generator.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "fullbore/base/check.h"
#include "fullbore/base/hash.h"
#include "fullbore/base/processor.h"
#include "fullbore/device/codegen/emit_file.h"
#include "fullbore/device/cpu/codegen/kernel_emitter.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wall"
#pragma GCC diagnostic ignored "-Wextra"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wconversion"
#include <llvm/ADT/StringMap.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#if LLVM_VERSION_MAJOR >= 17
#include <llvm/TargetParser/Host.h>
#else
#include <llvm/Support/Host.h>
#endif
#pragma GCC diagnostic pop

namespace fullbore::jit {
namespace {

llvm::StringMap<bool> host_features() {
#if LLVM_VERSION_MAJOR >= 19
  return llvm::sys::getHostCPUFeatures();
#else
  llvm::StringMap<bool> features;
  llvm::sys::getHostCPUFeatures(features);
  return features;
#endif
}

// The emitter unrolls, hoists and keeps accumulators apart itself: beyond Less, a cold start takes a tenth more
// time and makes no faster code (bench/results/2026-11-22-peptide-start.txt).
#if LLVM_VERSION_MAJOR >= 18
constexpr auto kOptimisation = llvm::CodeGenOptLevel::Less;
constexpr auto kQuick = llvm::CodeGenOptLevel::None;
#else
constexpr auto kOptimisation = llvm::CodeGenOpt::Less;
constexpr auto kQuick = llvm::CodeGenOpt::None;
#endif

}  // namespace

void initialise_llvm() {
  static std::once_flag once;
  std::call_once(once, [] {
    const std::scoped_lock lock(registration_mutex());
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
  });
}

int llvm_version() { return LLVM_VERSION_MAJOR; }

namespace {

/// Names of LLVM that stand for exactly one level's instructions. Only x86-64 has more than one level.
CodegenTarget level_target(ProcessorLevel level) {
  switch (level) {
    case ProcessorLevel::baseline: return {.cpu = "x86-64-v2", .features = ""};
    case ProcessorLevel::avx2: return {.cpu = "x86-64-v3", .features = "", .vector_bytes = 32};
    case ProcessorLevel::avx512:
      return {.cpu = "x86-64-v4", .features = "", .vector_bytes = 64, .avx512 = true};
    case ProcessorLevel::avx512_bf16:
    case ProcessorLevel::amx: break;
  }
  return {.cpu = "x86-64-v4",
          .features = "+avx512bf16,+avx512vnni",
          .vector_bytes = 64,
          .avx512 = true,
          .rounds_to_bf16 = true};
}

}  // namespace

CodegenTarget host_target() {
  if (this_processor().lowered) return level_target(this_processor().level);
  const llvm::StringMap<bool> features = host_features();
  CodegenTarget target;
  target.cpu = llvm::sys::getHostCPUName().str();
  std::vector<std::string> names;
  for (const auto& feature : features)
    names.push_back((feature.second ? "+" : "-") + feature.first().str());
  std::sort(names.begin(), names.end());
  for (const std::string& name : names)
    target.features += (target.features.empty() ? "" : ",") + name;
  const auto has = [&](const char* name) { return features.lookup(name); };
  target.avx512 = has("avx512f") && has("avx512bw") && has("avx512vl") && has("avx512dq");
  target.rounds_to_bf16 = target.avx512 && has("avx512bf16");
  target.vector_bytes = target.avx512 ? 64 : has("avx2") ? 32 : 16;
  return target;
}

std::string kernel_symbol(const std::string& kernel_text) {
  return "kernel_" + hash_hex(hash_text(kernel_text)) + hash_hex(hash_text(kernel_text, 1));
}

struct CodeGenerator::Implementation {
  CodegenTarget target;
  std::unique_ptr<llvm::TargetMachine> machine;

  std::unique_ptr<llvm::Module> emit(llvm::LLVMContext& context, const KernelIr& kernel) {
    auto module = std::make_unique<llvm::Module>("kernel", context);
    module->setDataLayout(machine->createDataLayout());
    module->setTargetTriple(TargetTriple(machine->getTargetTriple().str()));
    KernelEmitter(*module, kernel, target, kernel_symbol(text(kernel))).emit();
    return module;
  }
};

CodeGenerator::CodeGenerator(const CodegenTarget& target)
    : implementation_(std::make_unique<Implementation>()) {
  initialise_llvm();
  implementation_->target = target;
  const TargetTriple triple(llvm::sys::getProcessTriple());
  std::string error;
  const llvm::Target* registered = llvm::TargetRegistry::lookupTarget(triple, error);
  FB_CHECK(registered != nullptr, "{}", error);
  implementation_->machine.reset(registered->createTargetMachine(
      triple, target.cpu, target.features, llvm::TargetOptions(), llvm::Reloc::PIC_,
      llvm::CodeModel::Small, target.quick ? kQuick : kOptimisation, true));
}

CodeGenerator::~CodeGenerator() = default;

Result<std::string> CodeGenerator::compile(const KernelIr& kernel) {
  OwnedModule owned{std::make_unique<llvm::LLVMContext>(), nullptr};
  owned.module = implementation_->emit(*owned.context, kernel);
  return emit_file(std::move(owned), *implementation_->machine, FileKind::object);
}

std::string CodeGenerator::llvm_ir(const KernelIr& kernel) {
  llvm::LLVMContext context;
  std::string result;
  llvm::raw_string_ostream stream(result);
  implementation_->emit(context, kernel)->print(stream, nullptr);
  return stream.str();
}

}  // namespace fullbore::jit
