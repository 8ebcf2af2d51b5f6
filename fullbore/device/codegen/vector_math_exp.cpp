#include "fullbore/device/codegen/vector_math.h"
#include "fullbore/device/codegen/vector_math_parts.h"

// The polynomials are minimax (f32) and Chebyshev (f64) approximations of our own; the reductions
// are those of Cody and Waite 1980, "Software manual for the elementary functions".
namespace fullbore::jit {
namespace {

using Value = llvm::Value*;

struct Reduced {
  VectorBuilder::Rounded n;
  Value expm1;  ///< e^r - 1 for r = x - n ln 2, |r| <= ln 2 / 2
};

// ln 2 in two parts, the first with so few bits that n times it is exact.
Reduced reduce(const VectorBuilder& v, Value x, Value low = nullptr) {
  const VectorBuilder::Rounded n = v.round(v.mul(x, v.real(1.4426950408889634)));
  const bool d = v.is_double();
  Value minus_n = v.neg(n.real);
  Value r = v.fma(minus_n, v.real(d ? 0x1.62e42fee00000p-1 : 0x1.62e400p-1), x);
  r = v.fma(minus_n, v.real(d ? 0x1.a39ef35793c76p-33 : 0x1.7f7d1cp-20), r);
  if (low != nullptr) r = v.add(r, low);
  Value q =
      d ? v.polynomial(r, {0.5, 0.1666666666666667, 0.04166666666666667, 0.008333333333326112,
                           0.001388888888888373, 0.0001984126987490126, 2.4801587325605324e-05,
                           2.7557255297969643e-06, 2.755727357010214e-07, 2.5105259538448494e-08,
                           2.0914717341716378e-09})
        : v.polynomial(r, {0.5, 0x1.55548ap-3, 0x1.555528p-5, 0x1.123edap-7, 0x1.6cf4a4p-10});
  return {n, v.fma(v.mul(r, r), q, r)};
}

// NaN fails the comparisons of both and stays.
Value at_most(const VectorBuilder& v, Value x, double high) {
  return v.select(v.greater(x, v.real(high)), v.real(high), x);
}
Value clamp(const VectorBuilder& v, Value x, double low, double high) {
  x = at_most(v, x, high);
  return v.select(v.less(x, v.real(low)), v.real(low), x);
}

}  // namespace

llvm::Value* emit_exp_of_sum(llvm::IRBuilder<>& builder, llvm::Value* x, llvm::Value* low,
                             bool avx512) {
  const VectorBuilder v(builder, x->getType(), avx512);
  // The upper limit overflows to infinity in the scaling. What is below the lower one, as of keys that nobody sees, is made
  // of 0: many processors take 150 cycles over a product that is too small for its exponent.
  const double least = v.is_double() ? -746 : -104, most = v.is_double() ? 710 : 89;
  Value is_zero = v.less(x, v.real(least));
  if (v.fills_avx512()) {  // what is not scaled may be anything
    const Reduced reduced = reduce(v, at_most(v, x, most), low);
    return v.scale_where(builder.CreateNot(is_zero), v.add(reduced.expm1, v.real(1)),
                         reduced.n.real);
  }
  const Reduced reduced = reduce(v, clamp(v, x, least, most), low);
  Value p = v.select(is_zero, v.real(0), v.add(reduced.expm1, v.real(1)));
  // In two factors, each a normal number: only the last product rounds, so denormals are right.
  Value half = builder.CreateAShr(reduced.n.integer, 1);
  Value rest = builder.CreateSub(reduced.n.integer, half);
  return v.mul(v.mul(p, v.power_of_two(half)), v.power_of_two(rest));
}

llvm::Value* emit_exp(llvm::IRBuilder<>& builder, llvm::Value* x, bool avx512) {
  return emit_exp_of_sum(builder, x, nullptr, avx512);
}

llvm::Value* emit_expm1(llvm::IRBuilder<>& builder, llvm::Value* x) {
  const VectorBuilder v(builder, x->getType());
  const Reduced reduced = reduce(v, v.is_double() ? clamp(v, x, -40, 710) : clamp(v, x, -20, 89));
  // 2^n (p + 1) - 1, with half of 2^n so that the largest results do not overflow on the way.
  Value half = v.power_of_two(builder.CreateSub(reduced.n.integer, v.integer(1)));
  Value scaled = v.fma(half, reduced.expm1, v.sub(half, v.real(0.5)));
  return v.select(builder.CreateICmpEQ(reduced.n.integer, v.integer(0)), reduced.expm1,
                  v.add(scaled, scaled));
}

// tanh |x| = t / (t + 2) with t = e^(2|x|) - 1.
llvm::Value* emit_tanh(llvm::IRBuilder<>& builder, llvm::Value* x) {
  const VectorBuilder v(builder, x->getType());
  Value limit = v.real(v.is_double() ? 20 : 10);  // tanh is 1 from there on
  Value magnitude = v.abs(x);
  magnitude = v.select(v.greater(magnitude, limit), limit, magnitude);
  Value t = emit_expm1(builder, v.add(magnitude, magnitude));
  return v.copysign(v.div(t, v.add(t, v.real(2))), x);
}

}  // namespace fullbore::jit
