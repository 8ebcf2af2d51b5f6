#pragma once
#include <span>

#include "fullbore/base/dtype.h"
#include "fullbore/device/codegen/llvm_headers.h"
#include "fullbore/ir/scalar.h"

namespace fullbore::jit {

/// What a processor has that shortens code.
struct EmitterFeatures {
  bool avx512 = false;  ///< F, BW, VL and DQ
  bool rounds_to_bf16 =
      false;  ///< of vectors in one instruction (AVX512_BF16), which takes denormals for zeros
  bool has_bf16 = false;  ///< LLVM's bfloat is rounded to in one instruction, as PTX has it
};

/// Emits ScalarOps on vectors with the semantics of evaluate_real and evaluate_integer. In registers
/// bf16 and f16 are f32, booleans are i1, integers have their own width (u8 unsigned).
class ScalarEmitter {
 public:
  /// `lanes`: of a vector. 1: values are scalars, and nothing of a C library is called.
  ScalarEmitter(llvm::IRBuilder<>& builder, int lanes, const EmitterFeatures& features)
      : b_(builder),
        lanes_(lanes),
        avx512_(features.avx512),
        rounds_to_bf16_(features.rounds_to_bf16),
        has_bf16_(features.has_bf16) {}

  int lanes() const { return lanes_; }
  llvm::Type* scalar_type(DType dtype) const;  ///< in registers
  llvm::Type* vector_type(DType dtype) const;
  llvm::Value* constant(DType dtype, double value) const;
  /// `from` is the dtype of the operands, except of select's condition; equal to `to` unless the op
  /// compares or casts.
  llvm::Value* emit(ScalarOp op, DType from, DType to, std::span<llvm::Value* const> x);
  /// Between any two dtypes. Low-precision results stay f32; see round_low_precision.
  llvm::Value* cast(llvm::Value* x, DType from, DType to);
  /// The f32 value that `x` becomes when stored as bf16 or f16.
  llvm::Value* round_low_precision(llvm::Value* x, DType dtype);
  llvm::Value* f32_to_bf16_bits(llvm::Value* x);  ///< i16, to nearest even, NaN stays NaN
  llvm::Value* bf16_bits_to_f32(llvm::Value* x);

 private:
  llvm::Value* unary_real(ScalarOp op, llvm::Value* x);
  llvm::Value* binary_real(ScalarOp op, llvm::Value* a, llvm::Value* b);
  llvm::Value* compare_real(ScalarOp op, llvm::Value* a, llvm::Value* b);
  llvm::Value* integer(ScalarOp op, DType dtype, std::span<llvm::Value* const> x);
  llvm::Value* integer_divide(ScalarOp op, bool is_signed, llvm::Value* a, llvm::Value* b);
  llvm::Value* shift(ScalarOp op, DType dtype, llvm::Value* a, llvm::Value* b);
  llvm::Value* philox(ScalarOp half, llvm::Value* key, llvm::Value* low, llvm::Value* high);
  llvm::Value* real_to_i64(llvm::Value* x);
  llvm::Type* with_lanes(llvm::Type* scalar) const;

  llvm::IRBuilder<>& b_;
  int lanes_;
  bool avx512_;
  bool rounds_to_bf16_;
  bool has_bf16_;
};

}  // namespace fullbore::jit
