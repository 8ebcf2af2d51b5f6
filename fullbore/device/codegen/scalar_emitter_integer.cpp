#include "fullbore/base/check.h"
#include "fullbore/device/codegen/scalar_emitter.h"

namespace fullbore::jit {

llvm::Value* ScalarEmitter::integer(ScalarOp op, DType dtype, std::span<llvm::Value* const> x) {
  const bool is_signed = is_signed_integer(dtype);
  llvm::Value* a = x[0];
  llvm::Value* b = x.size() > 1 ? x[1] : nullptr;
  llvm::Type* type = a->getType();
  llvm::Constant* zero = llvm::Constant::getNullValue(type);
  llvm::Constant* one = llvm::ConstantInt::get(type, 1);
  const auto is_true = [&](llvm::Value* v) { return b_.CreateICmpNE(v, zero); };
  switch (op) {
    case ScalarOp::neg: return b_.CreateNeg(a);
    case ScalarOp::abs:
      return is_signed ? b_.CreateSelect(b_.CreateICmpSLT(a, zero), b_.CreateNeg(a), a) : a;
    case ScalarOp::sign: {
      llvm::Value* negative = is_signed
                                  ? b_.CreateSelect(b_.CreateICmpSLT(a, zero),
                                                    llvm::Constant::getAllOnesValue(type), zero)
                                  : zero;
      llvm::Value* positive = is_signed ? b_.CreateICmpSGT(a, zero) : is_true(a);
      return b_.CreateSelect(positive, one, negative);
    }
    case ScalarOp::floor:
    case ScalarOp::ceil:
    case ScalarOp::round: return a;
    case ScalarOp::is_finite: return llvm::Constant::getAllOnesValue(vector_type(DType::boolean));
    case ScalarOp::logical_not: return b_.CreateICmpEQ(a, zero);
    case ScalarOp::add: return b_.CreateAdd(a, b);
    case ScalarOp::sub: return b_.CreateSub(a, b);
    case ScalarOp::mul: return b_.CreateMul(a, b);
    case ScalarOp::div:
    case ScalarOp::remainder: return integer_divide(op, is_signed, a, b);
    case ScalarOp::maximum:
      return b_.CreateSelect(is_signed ? b_.CreateICmpSGT(a, b) : b_.CreateICmpUGT(a, b), a, b);
    case ScalarOp::minimum:
      return b_.CreateSelect(is_signed ? b_.CreateICmpSLT(a, b) : b_.CreateICmpULT(a, b), a, b);
    case ScalarOp::equal: return b_.CreateICmpEQ(a, b);
    case ScalarOp::not_equal: return b_.CreateICmpNE(a, b);
    case ScalarOp::less: return is_signed ? b_.CreateICmpSLT(a, b) : b_.CreateICmpULT(a, b);
    case ScalarOp::less_equal: return is_signed ? b_.CreateICmpSLE(a, b) : b_.CreateICmpULE(a, b);
    case ScalarOp::logical_and: return b_.CreateAnd(is_true(a), is_true(b));
    case ScalarOp::logical_or: return b_.CreateOr(is_true(a), is_true(b));
    case ScalarOp::bit_and: return b_.CreateAnd(a, b);
    case ScalarOp::bit_or: return b_.CreateOr(a, b);
    case ScalarOp::bit_xor: return b_.CreateXor(a, b);
    case ScalarOp::shift_left:
    case ScalarOp::shift_right: return shift(op, dtype, a, b);
    default: FB_CHECK(false, "{} of {}", scalar_op_name(op), dtype_name(dtype));
  }
}

// The processor traps on division by zero and on overflow (lowest / -1), and LLVM calls both
// undefined: divide by 1 there, and put the defined results in.
llvm::Value* ScalarEmitter::integer_divide(ScalarOp op, bool is_signed, llvm::Value* a,
                                           llvm::Value* b) {
  llvm::Type* type = a->getType();
  llvm::Constant* zero = llvm::Constant::getNullValue(type);
  llvm::Constant* one = llvm::ConstantInt::get(type, 1);
  llvm::Value* by_zero = b_.CreateICmpEQ(b, zero);
  if (!is_signed) {
    llvm::Value* safe = b_.CreateSelect(by_zero, one, b);
    llvm::Value* result = op == ScalarOp::div ? b_.CreateUDiv(a, safe) : b_.CreateURem(a, safe);
    return b_.CreateSelect(by_zero, zero, result);
  }
  llvm::Value* by_minus_one = b_.CreateICmpEQ(b, llvm::Constant::getAllOnesValue(type));
  llvm::Value* safe = b_.CreateSelect(b_.CreateOr(by_zero, by_minus_one), one, b);
  if (op == ScalarOp::div) {
    llvm::Value* result = b_.CreateSelect(by_minus_one, b_.CreateNeg(a), b_.CreateSDiv(a, safe));
    return b_.CreateSelect(by_zero, zero, result);
  }
  llvm::Value* rest = b_.CreateSRem(a, safe);  // 0 for safe = 1, as wanted in both special cases
  llvm::Value* opposite = b_.CreateICmpSLT(b_.CreateXor(rest, safe), zero);
  llvm::Value* correct = b_.CreateAnd(b_.CreateICmpNE(rest, zero), opposite);
  return b_.CreateSelect(correct, b_.CreateAdd(rest, safe), rest);
}

llvm::Value* ScalarEmitter::shift(ScalarOp op, DType dtype, llvm::Value* a, llvm::Value* b) {
  llvm::Type* type = a->getType();
  llvm::Constant* width =
      llvm::ConstantInt::get(type, static_cast<uint64_t>(dtype_bytes(dtype) * 8));
  llvm::Constant* zero = llvm::Constant::getNullValue(type);
  llvm::Value* inside = b_.CreateICmpULT(b, width);  // negative distances are large as unsigned
  llvm::Value* distance = b_.CreateSelect(inside, b, zero);
  llvm::Value* result =
      op == ScalarOp::shift_left ? b_.CreateShl(a, distance) : b_.CreateLShr(a, distance);
  return b_.CreateSelect(inside, result, zero);
}

// base/philox.h, on 32-bit halves that live in 64-bit lanes: the multiplier takes those.
llvm::Value* ScalarEmitter::philox(ScalarOp half, llvm::Value* key, llvm::Value* low,
                                   llvm::Value* high) {
  llvm::Type* type = key->getType();
  const auto number = [&](uint64_t n) { return llvm::ConstantInt::get(type, n); };
  const auto lower = [&](llvm::Value* v) { return b_.CreateAnd(v, number(0xffffffffU)); };
  const auto upper = [&](llvm::Value* v) { return b_.CreateLShr(v, 32); };
  llvm::Value* c0 = lower(low);
  llvm::Value* c1 = upper(low);
  llvm::Value* c2 = lower(high);
  llvm::Value* c3 = upper(high);
  llvm::Value* k0 = lower(key);
  llvm::Value* k1 = upper(key);
  for (int round = 0; round < 10; ++round) {
    llvm::Value* product0 = b_.CreateMul(number(0xD2511F53U), c0);
    llvm::Value* product1 = b_.CreateMul(number(0xCD9E8D57U), c2);
    c0 = b_.CreateXor(b_.CreateXor(upper(product1), c1), k0);
    c1 = lower(product1);
    c2 = b_.CreateXor(b_.CreateXor(upper(product0), c3), k1);
    c3 = lower(product0);
    k0 = lower(b_.CreateAdd(k0, number(0x9E3779B9U)));
    k1 = lower(b_.CreateAdd(k1, number(0xBB67AE85U)));
  }
  if (half == ScalarOp::philox_upper) return b_.CreateOr(c2, b_.CreateShl(c3, 32));
  return b_.CreateOr(c0, b_.CreateShl(c1, 32));
}

// base/dtype.cpp: truncated, saturated, NaN to 0. LLVM's own saturating conversion becomes scalar
// code on some targets.
llvm::Value* ScalarEmitter::real_to_i64(llvm::Value* x) {
  llvm::Type* real = x->getType();
  llvm::Type* type = vector_type(DType::i64);
  const auto number = [&](int64_t n) {
    return llvm::ConstantInt::get(type, static_cast<uint64_t>(n), true);
  };
  llvm::Value* above = b_.CreateFCmpOGE(x, llvm::ConstantFP::get(real, 0x1p63));
  llvm::Value* below = b_.CreateFCmpOLT(x, llvm::ConstantFP::get(real, -0x1p63));
  llvm::Value* outside = b_.CreateOr(b_.CreateOr(above, below), b_.CreateFCmpUNO(x, x));
  llvm::Value* safe = b_.CreateSelect(outside, llvm::ConstantFP::get(real, 0), x);
  llvm::Value* result = b_.CreateFPToSI(safe, type);
  result = b_.CreateSelect(above, number(INT64_MAX), result);
  return b_.CreateSelect(below, number(INT64_MIN), result);
}

llvm::Value* ScalarEmitter::cast(llvm::Value* x, DType from, DType to) {
  llvm::Type* type = vector_type(to);
  if (from == to || x->getType() == type) return x;
  llvm::Constant* zero = llvm::Constant::getNullValue(x->getType());
  if (to == DType::boolean)
    return is_floating(from) ? b_.CreateFCmpUNE(x, zero) : b_.CreateICmpNE(x, zero);
  if (is_floating(from))
    return is_floating(to)
               ? (from == DType::f64 ? b_.CreateFPTrunc(x, type) : b_.CreateFPExt(x, type))
               : b_.CreateTrunc(real_to_i64(x), type);
  const bool is_signed = is_signed_integer(from);
  if (is_floating(to)) return is_signed ? b_.CreateSIToFP(x, type) : b_.CreateUIToFP(x, type);
  return is_signed ? b_.CreateSExtOrTrunc(x, type) : b_.CreateZExtOrTrunc(x, type);
}

}  // namespace fullbore::jit
