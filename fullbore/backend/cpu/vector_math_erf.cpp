#include "fullbore/backend/cpu/vector_math.h"

namespace fullbore::jit {
namespace {

using Value = llvm::Value*;

// x + x P(x^2) near zero; elsewhere 1 - e^Q(|x|), where Q approximates log erfc.
Value erf_f32(const VectorBuilder& v, Value x) {
  Value t = v.abs(x);
  Value z = v.mul(x, x);
  Value p = v.polynomial(
      z, {0.12837916612625122, -0.3761262893676758, 0.11283625662326813, -0.026855740696191788,
          0.005192460957914591, -0.0008050818578340113, 8.002884715097025e-05});
  Value small = v.fma(x, p, x);
  Value limited = v.select(v.greater(t, v.real(4)), v.real(4), t);  // erf is 1 from there on
  Value q = v.polynomial(limited, {0.00016920316556934267, -1.1294883489608765, -0.6334010362625122,
                                   -0.108220174908638, 0.025080569088459015, -0.0041563319973647594,
                                   0.00043144903611391783, -2.0839173885178752e-05});
  Value large = v.copysign(v.sub(v.real(1), emit_exp(v.ir(), q)), x);
  return v.select(v.less(t, v.real(0.921875)), small, large);
}

// x + x P(x^2) up to 1; beyond, erfc(t) = e^(-t^2) G(s) with s = (t - 3) / (t + 3), which makes G
// smooth enough for one polynomial (the variable is that of Shepherd and Laframboise 1981).
Value erf_f64(const VectorBuilder& v, Value x) {
  Value t = v.abs(x);
  Value z = v.mul(x, x);
  Value p = v.polynomial(
      z, {0.1283791670955126, -0.3761263890318375, 0.11283791670954879, -0.026866170645076792,
          0.0052239776248180145, -0.000854832698083379, 0.0001205533111164271,
          -1.4925595266831182e-05, 1.6461000484121368e-06, -1.6350312701054695e-07,
          1.4659775274047436e-08, -1.1372848856791674e-09, 5.957176147748911e-11});
  Value small = v.fma(x, p, x);
  Value limited = v.select(v.greater(t, v.real(6)), v.real(6), t);  // erf is 1 from there on
  Value s = v.div(v.sub(limited, v.real(3)), v.add(limited, v.real(3)));
  Value g = v.polynomial(
      s, {0.17900115118138993, -0.3262335600431705, 0.24560380170764054, -0.1501159365459767,
          0.07166583747073908, -0.024392489500852457, 0.004269236259261076, 0.0007083217895241565,
          -0.0005949516726691174, 5.031284730421499e-05, 7.174016900954432e-05,
          -6.35870184538343e-06, -6.5538497289353715e-06});
  Value e = emit_exp(v.ir(), v.neg(v.mul(limited, limited)));
  Value large = v.copysign(v.fma(v.neg(e), g, v.real(1)), x);
  return v.select(v.less(t, v.real(1)), small, large);
}

}  // namespace

llvm::Value* emit_erf(llvm::IRBuilder<>& builder, llvm::Value* x) {
  const VectorBuilder v(builder, x->getType());
  return v.is_double() ? erf_f64(v, x) : erf_f32(v, x);
}

}  // namespace fullbore::jit
