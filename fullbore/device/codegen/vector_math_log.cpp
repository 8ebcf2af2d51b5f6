#include "fullbore/device/codegen/vector_math.h"
#include "fullbore/device/codegen/vector_math_parts.h"

namespace fullbore::jit {
namespace {

using Value = llvm::Value*;

// exponent ln 2 + log(1 + f) + low / (1 + f), for a low part that f lacks.
Value log_of_split(const VectorBuilder& v, Value exponent, Value f, Value low) {
  Value e = v.ir().CreateSIToFP(exponent, v.type());
  Value square = v.mul(f, f);
  Value tail;
  if (v.is_double()) {
    // With s = f / (2 + f): log(1 + f) = 2 atanh s = f - f^2/2 + s (f^2/2 + s^2 R(s^2)).
    Value s = v.div(f, v.add(f, v.real(2)));
    Value z = v.mul(s, s);
    Value series =
        v.mul(z, v.polynomial(z, {0.6666666666666735, 0.39999999999409347, 0.2857142874368868,
                                  0.22222198428680368, 0.18183572373424164, 0.15313831625738203,
                                  0.1479826475275153}));
    Value half_square = v.mul(square, v.real(0.5));
    tail = v.fma(s, v.add(half_square, series), v.mul(e, v.real(0x1.a39ef35793c76p-33)));
  } else {
    Value p = v.polynomial(
        f, {0.3333333134651184, -0.24999964237213135, 0.20000210404396057, -0.1666962057352066,
            0.14281047880649567, -0.12417622655630112, 0.11089033633470535, -0.10910651832818985,
            0.1038689985871315, -0.0550907664000988});
    tail = v.fma(v.mul(square, f), p, v.mul(e, v.real(0x1.7f7d1cp-20)));
  }
  if (low != nullptr) {
    Value slope = v.fma(f, v.sub(f, v.real(1)), v.real(1));  // 1 / (1 + f), nearly
    tail = v.fma(low, slope, tail);
  }
  tail = v.fma(square, v.real(-0.5), tail);
  Value high = v.real(v.is_double() ? 0x1.62e42fee00000p-1 : 0x1.62e400p-1);
  return v.fma(e, high, v.add(f, tail));
}

}  // namespace

BinarySplit split_normal(const VectorBuilder& v, llvm::Value* x) {
  llvm::IRBuilder<>& b = v.ir();
  const int mantissa = v.is_double() ? 52 : 23;
  Value root_half = v.integer(v.is_double() ? 0x3fe6a09e667f3bcd : 0x3f3504f3);
  Value exponent = b.CreateAShr(b.CreateSub(v.bits(x), root_half), mantissa);
  Value m = v.from_bits(b.CreateSub(v.bits(x), b.CreateShl(exponent, mantissa)));
  return {exponent, v.sub(m, v.real(1))};
}

BinarySplit split_positive(const VectorBuilder& v, llvm::Value* x) {
  const bool d = v.is_double();
  Value denormal = v.less(x, v.real(d ? 0x1p-1022 : 0x1p-126));
  BinarySplit parts = split_normal(v, v.select(denormal, v.mul(x, v.real(d ? 0x1p52 : 0x1p23)), x));
  Value shift = v.select(denormal, v.integer(d ? 52 : 23), v.integer(0));
  parts.exponent = v.ir().CreateSub(parts.exponent, shift);
  return parts;
}

// x itself for NaN and +inf, -inf at zero, NaN below.
llvm::Value* log_special_cases(const VectorBuilder& v, llvm::Value* x, llvm::Value* argument,
                               llvm::Value* result) {
  Value zero = v.real(0);
  Value other = v.select(v.equal(argument, zero), v.neg(v.infinity()),
                         v.select(v.less(argument, zero), v.nan(), x));
  Value ordinary = v.ir().CreateAnd(v.greater(argument, zero), v.less(x, v.infinity()));
  return v.select(ordinary, result, other);
}

llvm::Value* emit_log(llvm::IRBuilder<>& builder, llvm::Value* x) {
  const VectorBuilder v(builder, x->getType());
  const BinarySplit parts = split_positive(v, x);
  return log_special_cases(v, x, x, log_of_split(v, parts.exponent, parts.fraction, nullptr));
}

// log of u = 1 + x rounded, corrected by what the rounding lost.
llvm::Value* emit_log1p(llvm::IRBuilder<>& builder, llvm::Value* x) {
  const VectorBuilder v(builder, x->getType());
  Value one = v.real(1);
  Value u = v.add(x, one);
  Value x_part = v.sub(u, one);
  Value lost = v.add(v.sub(one, v.sub(u, x_part)), v.sub(x, x_part));  // Knuth's two-sum: exact
  const BinarySplit parts = split_normal(v, u);
  Value low = v.mul(lost, v.power_of_two(builder.CreateNeg(parts.exponent)));
  low = v.select(v.less(x, v.real(0x1p60)), low, v.real(0));  // 2^-exponent may underflow
  return log_special_cases(v, x, u, log_of_split(v, parts.exponent, parts.fraction, low));
}

}  // namespace fullbore::jit
