#pragma once
#include <string>

// LLVM's headers do not pass our warnings; every file of the code generator includes this one.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wall"
#pragma GCC diagnostic ignored "-Wextra"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wconversion"
#include <llvm/Config/llvm-config.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/DerivedTypes.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/PatternMatch.h>
#pragma GCC diagnostic pop

static_assert(LLVM_VERSION_MAJOR >= 15 && LLVM_VERSION_MAJOR <= 22, "LLVM 15 to 22");

namespace fullbore::jit {
/// How LLVM is told what it compiles for: from 21 on no longer by a text.
#if LLVM_VERSION_MAJOR >= 21
using TargetTriple = llvm::Triple;
#else
using TargetTriple = std::string;
#endif
}  // namespace fullbore::jit
