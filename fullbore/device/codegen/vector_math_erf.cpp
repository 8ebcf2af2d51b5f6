#include <array>

#include "fullbore/device/codegen/vector_math.h"

namespace fullbore::jit {
namespace {

using Value = llvm::Value*;

// Coefficients c0 to c5 of erf((i + f) / 4) for 0 <= f < 1, i = 0 to 15, by tools/golden/erf_table.py.
constexpr std::array<std::array<float, 16>, 6> kErfQuarters{{
    {0.0F, 0.276326388F, 0.520499885F, 0.711155653F, 0.842700779F, 0.92290014F, 0.966105163F,
     0.986671686F, 0.995322287F, 0.998537302F, 0.999593019F, 0.999899387F, 0.999977887F,
     0.999995708F, 0.999999285F, 0.999999881F},
    {0.282094777F, 0.265003353F, 0.219695151F, 0.160731748F, 0.103777595F, 0.059129823F,
     0.0297318455F, 0.0131930495F, 0.00516567426F, 0.00178466749F, 0.000545934541F, 0.000146115839F,
     3.59119986e-05F, 6.75404772e-06F, 6.57837873e-09F, 4.84749592e-07F},
    {6.31215698e-07F, -0.0165595077F, -0.0274564382F, -0.0301285777F, -0.0259505585F,
     -0.0184755549F, -0.0111446036F, -0.00576691981F, -0.00257479749F, -0.000997013529F,
     -0.000351078081F, -9.71142508e-05F, -3.48093708e-05F, -1.61031869e-06F, 9.48277648e-06F,
     -2.30467208e-06F},
    {-0.00588126434F, -0.00484713214F, -0.00231098011F, 0.000391170004F, 0.0021819917F,
     0.00261408719F, 0.00215640035F, 0.00139468547F, 0.000729329069F, 0.000318340521F,
     0.000159975505F, 3.27254347e-05F, 3.65130945e-05F, -9.01950807e-06F, -2.91003635e-05F,
     5.97641019e-06F},
    {9.78903608e-06F, 0.000530627498F, 0.000756664027F, 0.000626127992F, 0.000243249917F,
     -2.77227209e-05F, -0.000166799524F, -0.000174003639F, -0.000106629654F, -4.93745283e-05F,
     -6.64542022e-05F, -3.84412573e-07F, -3.14637e-05F, 1.27238191e-05F, 3.369763e-05F,
     -6.72383567e-06F},
    {0.000102444865F, 4.61578675e-05F, -2.86572922e-05F, -7.53496497e-05F, -5.29152931e-05F,
     -3.5638277e-05F, -1.03506363e-05F, 3.7531081e-06F, 1.39926703e-06F, -8.91556397e-07F,
     1.80077313e-05F, -2.82922406e-06F, 1.1680062e-05F, -5.31021487e-06F, -1.3511366e-05F,
     2.67631299e-06F},
}};

// Coefficients c0 to c7 of erf((i + f) / 2), i = 0 to 7, by the same.
constexpr std::array<std::array<float, 8>, 8> kErfHalves{{
    {0.0F, 0.520499885F, 0.842700779F, 0.966105163F, 0.995322287F, 0.999593019F, 0.999977887F,
     0.999999285F},
    {0.564189613F, 0.43939057F, 0.207555026F, 0.0594635643F, 0.0103314109F, 0.001091838F,
     7.17854491e-05F, 6.55462813e-08F},
    {-2.18715331e-06F, -0.109836102F, -0.103796862F, -0.0445737131F, -0.0103005497F,
     -0.00140422373F, -0.000138704971F, 3.70972994e-05F},
    {-0.0469884761F, -0.0183781814F, 0.0174125098F, 0.0171934813F, 0.00583175337F, 0.0012996014F,
     0.000303428242F, -0.000244769006F},
    {-0.000126981409F, 0.0116365673F, 0.00400714017F, -0.00235782447F, -0.00159713789F,
     -0.00126828579F, -0.000648893591F, 0.000708795385F},
    {0.00380008225F, -2.85720107e-05F, -0.00173596328F, -0.00109536911F, -0.000396212155F,
     0.00125943345F, 0.000885871297F, -0.00104191643F},
    {-0.000285683578F, -0.000649180671F, -0.000181311188F, 0.000765163917F, 0.000579202897F,
     -0.000820173766F, -0.00063103484F, 0.000757873291F},
    {-8.64636313e-05F, 6.57952987e-05F, 0.000143842539F, -0.000178217146F, -0.000177727488F,
     0.000226727381F, 0.000178940201F, -0.000216472545F},
}};

// As many pieces of |x| < 4 as a register has lanes: each coefficient is looked up in one. The linear term
// comes last: near zero, where c0 is 0, it is nearly all there is.
template <size_t kPieces, size_t kTerms>
Value erf_f32_by_pieces(const VectorBuilder& v, Value x,
                        const std::array<std::array<float, kPieces>, kTerms>& table) {
  constexpr double kLargest = kPieces * (1 - 0x1p-24);  // erf is 1 from there on
  Value t = v.mul(v.abs(x), v.real(kPieces / 4.0));
  t = v.select(v.greater(t, v.real(kLargest)), v.real(kLargest), t);
  Value piece = v.ir().CreateUnaryIntrinsic(llvm::Intrinsic::floor, t);
  Value f = v.sub(t, piece);
  Value index = v.bits(v.add(piece, v.real(0x1p23)));  // low bits: the integer
  const auto c = [&](size_t degree) { return v.look_up(table[degree], index); };
  Value square = v.mul(f, f);
  Value high;
  if constexpr (kTerms == 8) {
    // By pairs of terms: a chain of a product per term would take longer than all else does.
    high = v.fma(c(7), f, c(6));
    high = v.fma(high, square, v.fma(c(5), f, c(4)));
    high = v.fma(high, square, v.fma(c(3), f, c(2)));
  } else {
    high = c(kTerms - 1);
    for (size_t degree = kTerms - 2; degree >= 2; --degree) high = v.fma(high, f, c(degree));
  }
  return v.copysign(v.fma(c(1), f, v.fma(square, high, c(0))), x);
}

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

llvm::Value* emit_erf(llvm::IRBuilder<>& builder, llvm::Value* x, bool avx512) {
  const VectorBuilder v(builder, x->getType(), avx512);
  if (v.is_double()) return erf_f64(v, x);
  if (v.fills_avx512()) return erf_f32_by_pieces(v, x, kErfQuarters);
  return v.fills_avx2() ? erf_f32_by_pieces(v, x, kErfHalves) : erf_f32(v, x);
}

}  // namespace fullbore::jit
