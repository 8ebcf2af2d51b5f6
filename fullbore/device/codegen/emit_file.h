#pragma once
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "fullbore/base/result.h"
#include "fullbore/device/codegen/llvm_headers.h"

namespace llvm {
class TargetMachine;
}

namespace fullbore::jit {

/// A module and the context that it lives in.
struct OwnedModule {
  std::unique_ptr<llvm::LLVMContext> context;
  std::unique_ptr<llvm::Module> module;
};

/// Held while targets are registered: LLVM's list of them is not made for several threads.
std::mutex& registration_mutex();

enum class FileKind : uint8_t { assembly, object };

/// The module as assembly or object code for the machine, behind a few cheap passes: what the emitters write is what a
/// vectoriser and loop optimiser would make. Called by several threads at once, with machines of their own.
///
/// Failure with LLVM's words: the module is not valid, the machine writes no such file, or LLVM cannot go on (what it
/// calls a fatal error, for which it would end the process): of that its own memory is never given back, for nobody
/// knows what state it is in.
Result<std::string> emit_file(OwnedModule owned, llvm::TargetMachine& machine, FileKind kind);

}  // namespace fullbore::jit
