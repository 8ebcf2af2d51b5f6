#pragma once
#include "fullbore/device/codegen/vector_builder.h"

/// What the elementary functions share.
namespace fullbore::jit {

/// e^(x + low) for a low part below the last bit of x; null: none.
llvm::Value* emit_exp_of_sum(llvm::IRBuilder<>& builder, llvm::Value* x, llvm::Value* low,
                             bool avx512 = false);

/// x = 2^exponent (1 + fraction), sqrt(1/2) <= 1 + fraction < sqrt 2, for positive x. The fraction is
/// exact.
struct BinarySplit {
  llvm::Value* exponent;  ///< integer
  llvm::Value* fraction;
};
BinarySplit split_normal(const VectorBuilder& v, llvm::Value* x);    ///< x normal
BinarySplit split_positive(const VectorBuilder& v, llvm::Value* x);  ///< denormals too

/// What log gives at 0, below it, at infinity and NaN (`argument` is x of log, 1 + x of log1p);
/// `result` elsewhere.
llvm::Value* log_special_cases(const VectorBuilder& v, llvm::Value* x, llvm::Value* argument,
                               llvm::Value* result);

/// x - quadrant * pi/2, |remainder| <= pi/4, and the integer, right modulo 4.
struct ReducedAngle {
  llvm::Value* remainder;
  llvm::Value* quadrant;
};
/// Of a finite double with |x| >= 2^16, not a vector: an i64, and a remainder right to its last bit or so.
ReducedAngle reduce_huge(llvm::IRBuilder<>& builder, llvm::Value* x);

}  // namespace fullbore::jit
