#pragma once
#include "fullbore/device/codegen/vector_builder.h"

/// Elementary functions as instructions on vectors: no calls, no branches except around the reduction
/// of huge arguments of sin and cos, no tables but those that fit a register. x is a float or double, or
/// a vector of them. Of vectors the C library reduces huge arguments; of scalars code of our own does, with a table in
/// memory. `avx512`: the processor has AVX-512F; what has a shorter form for vectors that fill
/// its registers takes it (exp to the same bits).
/// Special values (NaN, infinities, denormals, overflow, underflow) follow C's Annex F. The bounds
/// are those of scalar_op_ulps(); tests/device/test_vector_math.cpp measures them.
namespace fullbore::jit {

llvm::Value* emit_exp(llvm::IRBuilder<>& builder, llvm::Value* x, bool avx512 = false);
llvm::Value* emit_expm1(llvm::IRBuilder<>& builder, llvm::Value* x);
llvm::Value* emit_log(llvm::IRBuilder<>& builder, llvm::Value* x);
llvm::Value* emit_log1p(llvm::IRBuilder<>& builder, llvm::Value* x);
llvm::Value* emit_tanh(llvm::IRBuilder<>& builder, llvm::Value* x);
llvm::Value* emit_erf(llvm::IRBuilder<>& builder, llvm::Value* x, bool avx512 = false);
llvm::Value* emit_sin(llvm::IRBuilder<>& builder, llvm::Value* x);
llvm::Value* emit_cos(llvm::IRBuilder<>& builder, llvm::Value* x);
llvm::Value* emit_pow(llvm::IRBuilder<>& builder, llvm::Value* x, llvm::Value* y);
/// The remainder of x / y with the sign of x, exact as C's fmod. Scalars alone; a loop.
llvm::Value* emit_fmod(llvm::IRBuilder<>& builder, llvm::Value* x, llvm::Value* y);

}  // namespace fullbore::jit
