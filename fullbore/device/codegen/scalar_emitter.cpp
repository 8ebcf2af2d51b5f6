#include "fullbore/device/codegen/scalar_emitter.h"

#include "fullbore/base/check.h"
#include "fullbore/device/codegen/vector_math.h"

namespace fullbore::jit {

using llvm::Intrinsic::ID;

llvm::Type* ScalarEmitter::scalar_type(DType dtype) const {
  switch (dtype) {
    case DType::f64: return b_.getDoubleTy();
    case DType::f32:
    case DType::bf16:
    case DType::f16: return b_.getFloatTy();
    case DType::i64: return b_.getInt64Ty();
    case DType::i32: return b_.getInt32Ty();
    case DType::u8:
    case DType::i8: return b_.getInt8Ty();
    case DType::boolean: return b_.getInt1Ty();
  }
  FB_CHECK(false);
}

llvm::Type* ScalarEmitter::with_lanes(llvm::Type* scalar) const {
  if (lanes_ == 1) return scalar;
  return llvm::FixedVectorType::get(scalar, static_cast<unsigned>(lanes_));
}

llvm::Type* ScalarEmitter::vector_type(DType dtype) const { return with_lanes(scalar_type(dtype)); }

llvm::Value* ScalarEmitter::constant(DType dtype, double value) const {
  llvm::Type* type = vector_type(dtype);
  if (is_floating(dtype)) return llvm::ConstantFP::get(type, round_to_dtype(value, dtype));
  const auto integer = dtype == DType::boolean ? int64_t{value != 0} : static_cast<int64_t>(value);
  return llvm::ConstantInt::get(type, static_cast<uint64_t>(integer), true);
}

llvm::Value* ScalarEmitter::emit(ScalarOp op, DType from, DType to,
                                 std::span<llvm::Value* const> x) {
  if (op == ScalarOp::cast) {
    llvm::Value* result = cast(x[0], from, to);
    return is_low_precision(to) ? round_low_precision(result, to) : result;
  }
  if (op == ScalarOp::select) return b_.CreateSelect(x[0], x[1], x[2]);
  if (is_philox(op)) return philox(op, x[0], x[1], x[2]);
  if (!is_floating(from)) return integer(op, from, x);
  if (scalar_op_arity(op) == 1) return unary_real(op, x[0]);
  return to == DType::boolean ? compare_real(op, x[0], x[1]) : binary_real(op, x[0], x[1]);
}

llvm::Value* ScalarEmitter::unary_real(ScalarOp op, llvm::Value* x) {
  llvm::Type* type = x->getType();
  llvm::Constant* zero = llvm::ConstantFP::get(type, 0);
  switch (op) {
    case ScalarOp::neg: return b_.CreateFNeg(x);
    case ScalarOp::abs: return b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x);
    case ScalarOp::sign: {
      llvm::Value* one =
          b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, llvm::ConstantFP::get(type, 1), x);
      return b_.CreateSelect(b_.CreateFCmpONE(x, zero), one, x);  // keeps NaN and signed zeros
    }
    case ScalarOp::exp: return emit_exp(b_, x, avx512_);
    case ScalarOp::expm1: return emit_expm1(b_, x);
    case ScalarOp::log: return emit_log(b_, x);
    case ScalarOp::log1p: return emit_log1p(b_, x);
    case ScalarOp::sin: return emit_sin(b_, x);
    case ScalarOp::cos: return emit_cos(b_, x);
    case ScalarOp::tanh: return emit_tanh(b_, x);
    case ScalarOp::erf: return emit_erf(b_, x, avx512_);
    case ScalarOp::sqrt: return b_.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, x);
    case ScalarOp::rsqrt:
      return b_.CreateFDiv(llvm::ConstantFP::get(type, 1),
                           b_.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, x));
    case ScalarOp::floor: return b_.CreateUnaryIntrinsic(llvm::Intrinsic::floor, x);
    case ScalarOp::ceil: return b_.CreateUnaryIntrinsic(llvm::Intrinsic::ceil, x);
    // rint, not roundeven: the latter has no instruction of its own in older versions of LLVM, and
    // the rounding mode is never changed.
    case ScalarOp::round: return b_.CreateUnaryIntrinsic(llvm::Intrinsic::rint, x);
    case ScalarOp::is_finite:
      return b_.CreateFCmpOLT(b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x),
                              llvm::ConstantFP::getInfinity(type));
    case ScalarOp::logical_not: return b_.CreateFCmpOEQ(x, zero);
    default: FB_CHECK(false, "{} of one float", scalar_op_name(op));
  }
}

llvm::Value* ScalarEmitter::binary_real(ScalarOp op, llvm::Value* a, llvm::Value* b) {
  switch (op) {
    case ScalarOp::add: return b_.CreateFAdd(a, b);
    case ScalarOp::sub: return b_.CreateFSub(a, b);
    case ScalarOp::mul: return b_.CreateFMul(a, b);
    case ScalarOp::div: return b_.CreateFDiv(a, b);
    case ScalarOp::pow: return emit_pow(b_, a, b);
    case ScalarOp::remainder: {
      llvm::Value* rest = lanes_ == 1 ? emit_fmod(b_, a, b) : b_.CreateFRem(a, b);
      llvm::Constant* zero = llvm::ConstantFP::get(a->getType(), 0);
      llvm::Value* opposite = b_.CreateXor(b_.CreateFCmpOLT(rest, zero), b_.CreateFCmpOLT(b, zero));
      // Unordered: a NaN rest is not zero, and stays NaN.
      llvm::Value* correct = b_.CreateAnd(b_.CreateFCmpUNE(rest, zero), opposite);
      return b_.CreateSelect(correct, b_.CreateFAdd(rest, b), rest);
    }
    // Ordered comparison gives b when either is NaN, as the processor's own instruction does; what
    // is left is NaN in a.
    case ScalarOp::maximum:
    case ScalarOp::minimum: {
      llvm::Value* first =
          op == ScalarOp::maximum ? b_.CreateFCmpOGT(a, b) : b_.CreateFCmpOLT(a, b);
      return b_.CreateSelect(b_.CreateFCmpUNO(a, a), a, b_.CreateSelect(first, a, b));
    }
    default: FB_CHECK(false, "{} of two floats", scalar_op_name(op));
  }
}

llvm::Value* ScalarEmitter::compare_real(ScalarOp op, llvm::Value* a, llvm::Value* b) {
  llvm::Constant* zero = llvm::ConstantFP::get(a->getType(), 0);
  switch (op) {
    case ScalarOp::equal: return b_.CreateFCmpOEQ(a, b);
    case ScalarOp::not_equal: return b_.CreateFCmpUNE(a, b);
    case ScalarOp::less: return b_.CreateFCmpOLT(a, b);
    case ScalarOp::less_equal: return b_.CreateFCmpOLE(a, b);
    case ScalarOp::logical_and:
      return b_.CreateAnd(b_.CreateFCmpUNE(a, zero), b_.CreateFCmpUNE(b, zero));
    case ScalarOp::logical_or:
      return b_.CreateOr(b_.CreateFCmpUNE(a, zero), b_.CreateFCmpUNE(b, zero));
    default: FB_CHECK(false, "{} compares no floats", scalar_op_name(op));
  }
}

llvm::Value* ScalarEmitter::bf16_bits_to_f32(llvm::Value* x) {
  llvm::Value* wide = b_.CreateZExt(x, with_lanes(b_.getInt32Ty()));
  return b_.CreateBitCast(b_.CreateShl(wide, 16), with_lanes(b_.getFloatTy()));
}

namespace {

// The bits whose widening x is; null if it is none.
llvm::Value* widened_bits(llvm::Value* x) {
  using namespace llvm::PatternMatch;
  llvm::Value* bits = nullptr;
  const bool widened = match(x, m_BitCast(m_Shl(m_ZExt(m_Value(bits)), m_SpecificInt(16)))) &&
                       bits->getType()->getScalarType()->isIntegerTy(16);
  return widened ? bits : nullptr;
}

}  // namespace

// What is a bf16 number already is not rounded again.
llvm::Value* ScalarEmitter::f32_to_bf16_bits(llvm::Value* x) {
  if (llvm::Value* bits = widened_bits(x)) return bits;
  if (has_bf16_)
    return b_.CreateBitCast(b_.CreateFPTrunc(x, with_lanes(b_.getBFloatTy())),
                            with_lanes(b_.getInt16Ty()));
  if (rounds_to_bf16_ && (lanes_ == 16 || lanes_ == 8)) {
    const auto rounding = lanes_ == 16 ? llvm::Intrinsic::x86_avx512bf16_cvtneps2bf16_512
                                       : llvm::Intrinsic::x86_avx512bf16_cvtneps2bf16_256;
    return b_.CreateBitCast(b_.CreateIntrinsic(rounding, {}, {x}), with_lanes(b_.getInt16Ty()));
  }
  llvm::Type* type = with_lanes(b_.getInt32Ty());
  const auto number = [&](uint64_t n) { return llvm::ConstantInt::get(type, n); };
  // Half to even by adding just under a half, or a half where the last kept bit is odd; NaN would overflow into a number.
  llvm::Value* bits = b_.CreateBitCast(x, type);
  llvm::Value* upper = b_.CreateLShr(bits, 16);
  llvm::Value* odd = b_.CreateAnd(upper, number(1));
  llvm::Value* sum = b_.CreateAdd(b_.CreateAdd(bits, number(0x7fff)), odd);
  llvm::Value* result;
  if (avx512_) {
    llvm::Value* rounded = b_.CreateLShr(sum, 16);
    llvm::Value* quiet = b_.CreateOr(upper, number(0x40));
    result = b_.CreateSelect(b_.CreateFCmpUNO(x, x), quiet, rounded);
  } else {
    // All ones are a NaN too, and need neither a blend nor a register for a constant.
    llvm::Value* nan = b_.CreateSExt(b_.CreateFCmpUNO(x, x), type);
    result = b_.CreateLShr(b_.CreateOr(sum, nan), 16);
  }
  return b_.CreateTrunc(result, with_lanes(b_.getInt16Ty()));
}

llvm::Value* ScalarEmitter::round_low_precision(llvm::Value* x, DType dtype) {
  if (dtype == DType::bf16) return bf16_bits_to_f32(f32_to_bf16_bits(x));
  return b_.CreateFPExt(b_.CreateFPTrunc(x, with_lanes(b_.getHalfTy())),
                        with_lanes(b_.getFloatTy()));
}

}  // namespace fullbore::jit
