#include <algorithm>
#include <array>

#include "fullbore/device/codegen/vector_math.h"
#include "fullbore/device/codegen/vector_math_parts.h"

// What takes as many steps as the exponents of its arguments are apart, by integers: scalars alone.
namespace fullbore::jit {
namespace {

using Value = llvm::Value*;

// 64 zeros, then the first bits of 2/pi behind the point; the largest double needs 1225 of both.
constexpr std::array<uint64_t, 20> kTwoOverPi = {
    0x0000000000000000, 0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041,
    0xfe5163abdebbc561, 0xb7246e3a424dd2e0, 0x06492eea09d1921c, 0xfe1deb1cb129a73e,
    0xe88235f52ebb4484, 0xe99c7026b45f7e41, 0x3991d639835339f4, 0x9c845f8bbdf9283b,
    0x1ff897ffde05980f, 0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7, 0x4f463f669e5fea2d,
    0x7527bac7ebe5f17b, 0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08, 0x56033046fc7b6bab,
};

// In memory that a GPU's threads share.
Value two_over_pi(llvm::IRBuilder<>& b) {
  constexpr unsigned kGlobal = 1;
  constexpr const char* kName = "two_over_pi";
  llvm::Module& module = *b.GetInsertBlock()->getModule();
  if (llvm::GlobalVariable* known = module.getNamedGlobal(kName)) return known;
  llvm::Constant* values =
      llvm::ConstantDataArray::get(b.getContext(), llvm::ArrayRef<uint64_t>(kTwoOverPi));
  return new llvm::GlobalVariable(module, values->getType(), true,
                                  llvm::GlobalValue::InternalLinkage, values, kName, nullptr,
                                  llvm::GlobalValue::NotThreadLocal, kGlobal);
}

struct Integers {
  llvm::IRBuilder<>& b;
  Value number(uint64_t n) const { return b.getInt64(n); }
  Value wide(Value x) const { return b.CreateZExt(x, b.getInt128Ty()); }
  Value least(Value x, Value y) const { return b.CreateSelect(b.CreateICmpSLT(x, y), x, y); }
  Value most(Value x, Value y) const { return b.CreateSelect(b.CreateICmpSGT(x, y), x, y); }
  /// 2^n, for n in the range of normal exponents.
  Value power_of_two(Value n) const {
    return b.CreateBitCast(b.CreateShl(b.CreateAdd(n, number(1023)), number(52)), b.getDoubleTy());
  }
};

}  // namespace

// Payne and Hanek 1983: x is an integer m < 2^53 times 2^e. Bits of 2/pi whose products with it are multiples of four
// quadrants are left out: of 192 bits behind them the lowest 192 of m times those are the quadrant, two bits, and its
// fraction, whose first 61 bits at most are alike.
ReducedAngle reduce_huge(llvm::IRBuilder<>& builder, llvm::Value* x) {
  const Integers n{builder};
  llvm::IRBuilder<>& b = builder;
  llvm::Type* i64 = b.getInt64Ty();
  Value bits = b.CreateBitCast(x, i64);
  Value m =
      b.CreateOr(b.CreateAnd(bits, n.number((uint64_t{1} << 52) - 1)), n.number(uint64_t{1} << 52));
  Value exponent = b.CreateAnd(b.CreateLShr(bits, 52), n.number(2047));
  Value first_bit = b.CreateSub(exponent, n.number(1075 - 62));
  Value word = b.CreateLShr(first_bit, 6);
  Value shift = b.CreateAnd(first_bit, n.number(63));
  std::array<Value, 4> words{};
  for (uint64_t i = 0; i < words.size(); ++i)
    words[i] = b.CreateLoad(i64, b.CreateGEP(i64, two_over_pi(b), b.CreateAdd(word, n.number(i))));
  std::array<Value, 3> window{};  // the highest first
  for (size_t i = 0; i < window.size(); ++i)
    window[i] = b.CreateIntrinsic(llvm::Intrinsic::fshl, {i64}, {words[i], words[i + 1], shift});

  // Modulo 2^192, the lowest 64 bits first. The carry by comparison: PTX's own chain of additions is LLVM's to order.
  const auto upper = [&](Value w) {
    Value product = b.CreateMul(n.wide(m), n.wide(w));
    return b.CreateTrunc(b.CreateLShr(product, 64), i64);
  };
  Value p0 = b.CreateMul(m, window[2]);
  Value p1 = b.CreateAdd(b.CreateMul(m, window[1]), upper(window[2]));
  Value carry = b.CreateZExt(b.CreateICmpULT(p1, upper(window[2])), i64);
  Value p2 = b.CreateAdd(b.CreateAdd(b.CreateMul(m, window[0]), upper(window[1])), carry);
  Value quadrant = b.CreateLShr(p2, 62);
  // The fraction alone, as a number between -1/2 and 1/2 of a quadrant.
  const auto shifted = [&](Value high, Value low) {
    return b.CreateIntrinsic(llvm::Intrinsic::fshl, {i64}, {high, low, n.number(2)});
  };
  Value high = shifted(p2, p1), middle = shifted(p1, p0);
  Value negative = b.CreateICmpSLT(high, n.number(0));
  quadrant = b.CreateAdd(quadrant, b.CreateZExt(negative, i64));
  // Its 128 bits: the complement is 2^-128 from the negative.
  high = b.CreateSelect(negative, b.CreateNot(high), high);
  middle = b.CreateSelect(negative, b.CreateNot(middle), middle);
  Value zeros = b.CreateIntrinsic(llvm::Intrinsic::ctlz, {i64}, {high, b.getFalse()});
  zeros = n.least(zeros, n.number(63));
  Value top = b.CreateIntrinsic(llvm::Intrinsic::fshl, {i64}, {high, middle, zeros});
  Value rest = b.CreateShl(middle, zeros);
  // 53 bits and the 64 behind them, times pi/2 in two parts.
  llvm::Type* real = b.getDoubleTy();
  const auto constant = [&](double c) { return llvm::ConstantFP::get(real, c); };
  Value a = b.CreateFMul(b.CreateUIToFP(b.CreateLShr(top, 11), real), constant(0x1p-53));
  Value behind = b.CreateIntrinsic(llvm::Intrinsic::fshl, {i64}, {top, rest, n.number(53)});
  Value c = b.CreateFMul(b.CreateUIToFP(behind, real), constant(0x1p-117));
  Value half_pi = constant(0x1.921fb54442d18p+0);
  Value r = b.CreateFMul(a, half_pi);
  const auto fma = [&](Value f, Value g, Value h) {
    return b.CreateIntrinsic(llvm::Intrinsic::fma, {real}, {f, g, h});
  };
  Value low = fma(a, half_pi, b.CreateFNeg(r));
  low = fma(a, constant(0x1.1a62633145c07p-54), low);
  low = fma(c, half_pi, low);
  r = b.CreateFMul(b.CreateFAdd(r, low), n.power_of_two(b.CreateNeg(zeros)));
  r = b.CreateSelect(negative, b.CreateFNeg(r), r);
  Value below = b.CreateICmpSLT(bits, n.number(0));
  return {b.CreateSelect(below, b.CreateFNeg(r), r),
          b.CreateSelect(below, b.CreateNeg(quadrant), quadrant)};
}

// Integers x = m 2^e and y likewise: the remainder of m 2^(e - e of y) by the mantissa of y, some bits of the power at a
// time, as many as 64 leave behind a mantissa.
llvm::Value* emit_fmod(llvm::IRBuilder<>& builder, llvm::Value* x, llvm::Value* y) {
  const VectorBuilder v(builder, x->getType());
  const Integers n{builder};
  llvm::IRBuilder<>& b = builder;
  const uint64_t mantissa = v.is_double() ? 52 : 23;
  const uint64_t step = 63 - mantissa;
  const uint64_t last_exponent = v.is_double() ? 2047 : 255;
  struct Parts {
    Value mantissa;
    Value exponent;
  };
  const auto parts = [&](Value a) {
    Value bits = b.CreateZExtOrTrunc(v.bits(v.abs(a)), b.getInt64Ty());
    Value exponent = b.CreateLShr(bits, mantissa);
    Value fraction = b.CreateAnd(bits, n.number((uint64_t{1} << mantissa) - 1));
    Value normal = b.CreateICmpNE(exponent, n.number(0));
    Value leading = b.CreateSelect(normal, n.number(uint64_t{1} << mantissa), n.number(0));
    return Parts{b.CreateOr(fraction, leading), n.most(exponent, n.number(1))};
  };
  const Parts of_x = parts(x), of_y = parts(y);
  Value apart = b.CreateSub(of_x.exponent, of_y.exponent);
  Value by = b.CreateSelect(b.CreateICmpEQ(of_y.mantissa, n.number(0)), n.number(1), of_y.mantissa);
  Value first = b.CreateURem(of_x.mantissa, by);

  llvm::Function* parent = b.GetInsertBlock()->getParent();
  auto* before = b.GetInsertBlock();
  auto* loop = llvm::BasicBlock::Create(b.getContext(), "remainder", parent);
  auto* after = llvm::BasicBlock::Create(b.getContext(), "remaindered", parent);
  b.CreateCondBr(b.CreateICmpSGT(apart, n.number(0)), loop, after);
  b.SetInsertPoint(loop);
  llvm::PHINode* rest = b.CreatePHI(b.getInt64Ty(), 2);
  llvm::PHINode* left = b.CreatePHI(b.getInt64Ty(), 2);
  rest->addIncoming(first, before);
  left->addIncoming(apart, before);
  Value bits = n.least(left, n.number(step));
  Value next = b.CreateURem(b.CreateShl(rest, bits), by);
  Value next_left = b.CreateSub(left, bits);
  rest->addIncoming(next, loop);
  left->addIncoming(next_left, loop);
  b.CreateCondBr(b.CreateICmpSGT(next_left, n.number(0)), loop, after);
  b.SetInsertPoint(after);
  llvm::PHINode* result = b.CreatePHI(b.getInt64Ty(), 2);
  result->addIncoming(first, before);
  result->addIncoming(next, loop);

  // Times its power of two, exactly: in two factors where one would be no normal number.
  Value power = b.CreateSub(of_y.exponent, n.number(v.is_double() ? 1075 : 150));
  Value half = b.CreateAShr(power, 1);
  Value scaled = b.CreateFMul(b.CreateUIToFP(result, b.getDoubleTy()), n.power_of_two(half));
  scaled = b.CreateFMul(scaled, n.power_of_two(b.CreateSub(power, half)));
  Value remainder = v.copysign(v.is_double() ? scaled : b.CreateFPTrunc(scaled, v.type()), x);
  remainder = v.select(b.CreateICmpSLT(apart, n.number(0)), x, remainder);
  Value ends = b.CreateOr(b.CreateICmpEQ(of_x.exponent, n.number(last_exponent)), v.is_nan(y));
  return v.select(b.CreateOr(ends, v.equal(y, v.real(0))), v.nan(), remainder);
}

}  // namespace fullbore::jit
