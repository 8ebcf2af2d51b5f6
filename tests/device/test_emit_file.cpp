#include "fullbore/device/codegen/emit_file.h"

#include <gmock/gmock.h>

#include <functional>

#include "fullbore/device/cpu/codegen/code_generator.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wall"
#pragma GCC diagnostic ignored "-Wextra"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wconversion"
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Target/TargetMachine.h>
#pragma GCC diagnostic pop

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/lsan_interface.h>
#endif

#if defined(__x86_64__)
namespace fullbore::jit {
namespace {

using testing::HasSubstr;

std::unique_ptr<llvm::TargetMachine> old_machine() {
  initialise_llvm();
  std::string error;
  const TargetTriple triple("x86_64-pc-linux-gnu");
  const llvm::Target* const target = llvm::TargetRegistry::lookupTarget(triple, error);
  return std::unique_ptr<llvm::TargetMachine>(
      target == nullptr ? nullptr
                        : target->createTargetMachine(triple, "x86-64", "", llvm::TargetOptions(),
                                                      llvm::Reloc::PIC_));
}

llvm::Function* declaration(llvm::Module* module, llvm::Intrinsic::ID intrinsic) {
#if LLVM_VERSION_MAJOR >= 20
  return llvm::Intrinsic::getOrInsertDeclaration(module, intrinsic);
#else
  return llvm::Intrinsic::getDeclaration(module, intrinsic);
#endif
}

/// long f() with a body that `value` makes.
OwnedModule function_of(const std::function<llvm::Value*(llvm::IRBuilder<>&)>& value) {
  OwnedModule owned{std::make_unique<llvm::LLVMContext>(), nullptr};
  owned.module = std::make_unique<llvm::Module>("test", *owned.context);
  owned.module->setTargetTriple(TargetTriple("x86_64-pc-linux-gnu"));
  llvm::IRBuilder<> builder(*owned.context);
  auto* const function =
      llvm::Function::Create(llvm::FunctionType::get(builder.getInt64Ty(), false),
                             llvm::Function::ExternalLinkage, "f", *owned.module);
  builder.SetInsertPoint(llvm::BasicBlock::Create(*owned.context, "", function));
  builder.CreateRet(value(builder));
  return owned;
}

OwnedModule seven() {
  return function_of([](llvm::IRBuilder<>& builder) { return builder.getInt64(7); });
}

// An instruction that this processor does not have: LLVM finds out in the middle of its work, and would end the process.
TEST(EmitFile, WhatLlvmCannotGoOnWithIsAFailure) {
#if defined(__SANITIZE_ADDRESS__)
  const __lsan::ScopedDisabler what_llvm_loses;
#endif
  const auto machine = old_machine();
  ASSERT_NE(machine, nullptr);
  for (int i = 0; i < 3; ++i) {
    const Result<std::string> emitted =
        emit_file(function_of([](llvm::IRBuilder<>& builder) {
                    auto* const rdpid = declaration(builder.GetInsertBlock()->getModule(),
                                                    llvm::Intrinsic::x86_rdpid);
                    return builder.CreateZExt(builder.CreateCall(rdpid), builder.getInt64Ty());
                  }),
                  *machine, FileKind::object);
    ASSERT_FALSE(emitted.ok());
    EXPECT_THAT(emitted.error(), HasSubstr("Cannot select"));
    // Another compilation, by another machine, is none the worse.
    const Result<std::string> after = emit_file(seven(), *old_machine(), FileKind::assembly);
    ASSERT_TRUE(after.ok()) << after.error();
    EXPECT_THAT(after.value(), HasSubstr("$7, %eax"));
  }
}

TEST(EmitFile, AModuleThatIsNotValidIsAFailure) {
  OwnedModule owned = seven();
  owned.module->getFunction("f")->begin()->back().eraseFromParent();
  const Result<std::string> emitted = emit_file(std::move(owned), *old_machine(), FileKind::object);
  ASSERT_FALSE(emitted.ok());
  EXPECT_THAT(emitted.error(), HasSubstr("LLVM: "));
}

}  // namespace
}  // namespace fullbore::jit
#endif
