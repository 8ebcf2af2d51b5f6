#include "fullbore/device/codegen/vector_math.h"
#include "fullbore/device/codegen/vector_math_parts.h"

namespace fullbore::jit {
namespace {

using Value = llvm::Value*;

// An unevaluated sum high + low, |low| below the last bit of high.
struct Pair {
  Value high;
  Value low;
};

// a + b exactly, for |a| >= |b| (Dekker 1971).
Pair fast_two_sum(const VectorBuilder& v, Value a, Value b) {
  Value high = v.add(a, b);
  return {high, v.add(v.sub(a, high), b)};
}

// Pairs multiplied, to about twice the precision.
Pair multiply(const VectorBuilder& v, const Pair& a, const Pair& b) {
  Value high = v.mul(a.high, b.high);
  Value low = v.fma(a.high, b.high, v.neg(high));
  low = v.fma(a.high, b.low, low);
  return {high, v.fma(a.low, b.high, low)};
}

// log x in f64 with ten bits more than a double has, which y takes away: the exponent y log x may be
// as large as 745. With s = f / (2 + f) and z = s^2, log(1 + f) = s (2 + z (2/3 + z Q(z))); all but
// the innermost product are pairs. Zero, infinity and NaN come out as log has them.
Pair precise_log(const VectorBuilder& v, Value x) {
  llvm::IRBuilder<>& b = v.ir();
  const BinarySplit parts = split_positive(v, x);
  Value f = parts.fraction;
  const Pair denominator = fast_two_sum(v, v.real(2), f);
  Value quotient = v.div(f, denominator.high);
  Value rest = v.fma(v.neg(quotient), denominator.high, f);
  rest = v.fma(v.neg(quotient), denominator.low, rest);
  const Pair s{quotient, v.div(rest, denominator.high)};
  const Pair z = multiply(v, s, s);
  Value q = v.polynomial(
      z.high, {0.4, 0.2857142857142937, 0.22222222221652765, 0.18181818336100042,
               0.15384594886986175, 0.13334808799953698, 0.11706126434027067, 0.11724327379875762});
  Pair p = fast_two_sum(v, v.real(0x1.5555555555555p-1), v.mul(z.high, q));
  p.low = v.add(p.low, v.real(0x1.5555555555555p-55));
  const Pair w = multiply(v, z, p);
  Pair sum = fast_two_sum(v, v.real(2), w.high);
  sum.low = v.add(sum.low, w.low);
  const Pair log1p = multiply(v, s, sum);

  Value e = b.CreateSIToFP(parts.exponent, v.type());
  Value high_part = v.mul(e, v.real(0x1.62e42fee00000p-1));  // exact
  // e = 0: nothing to lose; otherwise |e ln 2| > |log(1 + f)|.
  Pair result = fast_two_sum(v, high_part, log1p.high);
  result.low = v.add(result.low, v.fma(e, v.real(0x1.a39ef35793c76p-33), log1p.low));
  Value ordinary = b.CreateAnd(v.greater(x, v.real(0)), v.less(x, v.infinity()));
  return {log_special_cases(v, x, x, result.high), v.select(ordinary, result.low, v.real(0))};
}

// |x|^y, but for the cases that emit_pow sorts out.
Value magnitude_f64(const VectorBuilder& v, Value x, Value y) {
  const Pair log = precise_log(v, v.abs(x));
  Value exponent = v.mul(y, log.high);
  Value low = v.fma(y, log.low, v.fma(y, log.high, v.neg(exponent)));
  low = v.select(v.less(v.abs(exponent), v.real(1e4)), low, v.real(0));  // not inf - inf
  return emit_exp_of_sum(v.ir(), exponent, low);
}

// f32: in f64, where the errors of log and exp vanish.
Value magnitude_f32(const VectorBuilder& v, Value x, Value y) {
  llvm::IRBuilder<>& b = v.ir();
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(v.type());
  llvm::Type* wide = b.getDoubleTy();
  if (vector != nullptr) wide = llvm::FixedVectorType::get(wide, vector->getNumElements());
  Value log = emit_log(b, b.CreateFPExt(v.abs(x), wide));
  return b.CreateFPTrunc(emit_exp(b, b.CreateFMul(b.CreateFPExt(y, wide), log)), v.type());
}

}  // namespace

// The table of special cases: C standard, Annex F.10.4.4.
llvm::Value* emit_pow(llvm::IRBuilder<>& builder, llvm::Value* x, llvm::Value* y) {
  const VectorBuilder v(builder, x->getType());
  Value result = v.is_double() ? magnitude_f64(v, x, y) : magnitude_f32(v, x, y);
  Value one = v.real(1);
  result = v.select(v.equal(v.abs(x), one), one, result);
  const auto is_integer = [&](Value a) {
    return v.equal(builder.CreateUnaryIntrinsic(llvm::Intrinsic::trunc, a), a);
  };
  Value integral = is_integer(y);
  Value odd = builder.CreateAnd(integral, builder.CreateNot(is_integer(v.mul(y, v.real(0.5)))));
  Value negative = builder.CreateICmpSLT(v.bits(x), v.integer(0));
  result = v.select(builder.CreateAnd(negative, odd), v.neg(result), result);
  Value below = builder.CreateAnd(v.less(x, v.real(0)), v.greater(x, v.neg(v.infinity())));
  result = v.select(builder.CreateAnd(below, builder.CreateNot(integral)), v.nan(), result);
  Value always_one = builder.CreateOr(v.equal(x, one), v.equal(y, v.real(0)));
  return v.select(always_one, one, result);
}

}  // namespace fullbore::jit
