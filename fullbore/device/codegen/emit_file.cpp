#include "fullbore/device/codegen/emit_file.h"

#include <fmt/format.h>

#include <mutex>
#include <utility>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wall"
#pragma GCC diagnostic ignored "-Wextra"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wconversion"
#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Pass.h>
#include <llvm/Support/ErrorHandling.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/Scalar.h>
#include <llvm/Transforms/Utils.h>
#pragma GCC diagnostic pop

namespace fullbore::jit {
namespace {

#if LLVM_VERSION_MAJOR >= 18
constexpr auto kAssembly = llvm::CodeGenFileType::AssemblyFile;
constexpr auto kObject = llvm::CodeGenFileType::ObjectFile;
#else
constexpr auto kAssembly = llvm::CGFT_AssemblyFile;
constexpr auto kObject = llvm::CGFT_ObjectFile;
#endif

struct FatalError {
  std::string reason;
};

thread_local bool t_emits = false;

// LLVM ends the process unless this leaves it. Its own frames have no destructors for an exception to run: what they
// hold is lost, and nothing else.
void leave_llvm(void*, const char* reason, bool) {
  if (t_emits) throw FatalError{reason};
}

/// While it lives, this thread leaves LLVM by an exception.
class FatalErrorsThrown {
 public:
  FatalErrorsThrown() {
    static std::once_flag once;
    std::call_once(once, [] { llvm::install_fatal_error_handler(leave_llvm, nullptr); });
    t_emits = true;
  }
  ~FatalErrorsThrown() { t_emits = false; }
  FatalErrorsThrown(const FatalErrorsThrown&) = delete;
  FatalErrorsThrown& operator=(const FatalErrorsThrown&) = delete;
};

/// What emitting works on.
struct Work {
  OwnedModule owned;
  llvm::SmallVector<char, 0> file;
  llvm::raw_svector_ostream stream{file};
  llvm::legacy::PassManager passes;
};

Result<std::string> run(Work& work, llvm::TargetMachine& machine, FileKind kind) {
  std::string problem;
  llvm::raw_string_ostream problems(problem);
  if (llvm::verifyModule(*work.owned.module, &problems)) return Failure{"LLVM: " + problems.str()};
  // First, for the first pass that asks settles what all passes know of the target: the default knows
  // of no masked loads and stores, and takes them apart lane by lane.
  work.passes.add(llvm::createTargetTransformInfoWrapperPass(machine.getTargetIRAnalysis()));
  work.passes.add(llvm::createPromoteMemoryToRegisterPass());
  work.passes.add(llvm::createEarlyCSEPass());
  work.passes.add(llvm::createDeadCodeEliminationPass());
  if (machine.addPassesToEmitFile(work.passes, work.stream, nullptr,
                                  kind == FileKind::assembly ? kAssembly : kObject))
    return Failure{fmt::format("LLVM: no {} code for {}",
                               kind == FileKind::assembly ? "assembly" : "object",
                               machine.getTargetCPU().str())};
  work.passes.run(*work.owned.module);
  return std::string(work.file.begin(), work.file.end());
}

}  // namespace

std::mutex& registration_mutex() {
  static std::mutex mutex;
  return mutex;
}

Result<std::string> emit_file(OwnedModule owned, llvm::TargetMachine& machine, FileKind kind) {
  auto work = std::make_unique<Work>();
  work->owned = std::move(owned);
  const FatalErrorsThrown thrown;
  try {
    return run(*work, machine, kind);
  } catch (const FatalError& error) {
    static_cast<void>(work.release());  // a pass that was left in the middle must not be destroyed
    return Failure{"LLVM: " + error.reason};
  }
}

}  // namespace fullbore::jit
