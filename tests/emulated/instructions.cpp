// Compiled twice: as the processor's instructions, and as those that immintrin.h here computes (FB_COMPUTED). Nothing of the
// standard library's templates is made here, for the linker keeps one of each for processors that lack these instructions.
#include "instructions.h"

#include <immintrin.h>

#include <cstring>

namespace fullbore::emulated {
namespace {

template <class Register>
Register get(const uint8_t* from) {
  Register all;
  std::memcpy(&all, from, sizeof all);
  return all;
}
template <class Result>
void put(Written& to, Result result) {
  std::memcpy(to.bytes, &result, sizeof result);
}

// Operands by the names that the lists below use.
#define FB_OPERANDS                                                             \
  [[maybe_unused]] const auto a = get<__m512>(in.a), b = get<__m512>(in.b);     \
  [[maybe_unused]] const auto c = get<__m512>(in.c);                            \
  [[maybe_unused]] const auto da = get<__m512d>(in.a), db = get<__m512d>(in.b); \
  [[maybe_unused]] const auto dc = get<__m512d>(in.c);                          \
  [[maybe_unused]] const auto ia = get<__m512i>(in.a), ib = get<__m512i>(in.b); \
  [[maybe_unused]] const auto ic = get<__m512i>(in.c);                          \
  [[maybe_unused]] const auto ha = get<__m256i>(in.a), hb = get<__m256i>(in.b); \
  [[maybe_unused]] const auto hc = get<__m256i>(in.c);                          \
  [[maybe_unused]] const auto qa = get<__m128i>(in.a), qb = get<__m128i>(in.b); \
  [[maybe_unused]] const uint64_t mask = in.mask;                               \
  [[maybe_unused]] const auto m8 = static_cast<__mmask8>(mask);                 \
  [[maybe_unused]] const auto m16 = static_cast<__mmask16>(mask);               \
  [[maybe_unused]] const auto m32 = static_cast<__mmask32>(mask);               \
  [[maybe_unused]] int32_t words[16];                                           \
  std::memcpy(words, in.a, sizeof words);                                       \
  [[maybe_unused]] int64_t longs[8];                                            \
  std::memcpy(longs, in.a, sizeof longs);                                       \
  [[maybe_unused]] int16_t shorts[32];                                          \
  std::memcpy(shorts, in.a, sizeof shorts)
#define FB_RESULT(name, kind, extension, expression)                               \
  Instruction {                                                                    \
    name, Kind::kind, Extension::extension, [](const Operands& in, Written& out) { \
      FB_OPERANDS;                                                                 \
      put(out, expression);                                                        \
    }                                                                              \
  }
#define FB_EFFECT(name, kind, extension, statement)                                \
  Instruction {                                                                    \
    name, Kind::kind, Extension::extension, [](const Operands& in, Written& out) { \
      FB_OPERANDS;                                                                 \
      statement;                                                                   \
    }                                                                              \
  }

// Rows, columns and depth are parts of the mask.
[[maybe_unused]] void multiply_tiles(const Operands& in, Written& out) {
  const int rows = 1 + static_cast<int>(in.mask % 16),
            columns = 1 + static_cast<int>(in.mask / 16 % 16);
  const int depth = 1 + static_cast<int>(in.mask / 256 % 16);
  struct alignas(64) {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
  } shape{};
  shape.palette = 1;
  shape.rows[0] = shape.rows[1] = static_cast<uint8_t>(rows);
  shape.rows[2] = static_cast<uint8_t>(depth);
  shape.row_bytes[0] = shape.row_bytes[2] = static_cast<uint16_t>(4 * columns);
  shape.row_bytes[1] = static_cast<uint16_t>(4 * depth);
  // Row r of an operand is its register, turned by r elements.
  alignas(64) uint8_t tiles[3][16][64];
  const uint8_t* operands[3] = {in.a, in.b, in.c};
  for (int tile = 0; tile < 3; ++tile)
    for (int row = 0; row < 16; ++row)
      for (int i = 0; i < 64; ++i) tiles[tile][row][i] = operands[tile][(i + 4 * row) % 64];
  _tile_loadconfig(&shape);
  _tile_loadd(0, tiles[0], 64);
  _tile_loadd(1, tiles[1], 64);
  _tile_loadd(2, tiles[2], 64);
  if (in.mask >> 63) _tile_zero(0);
  _tile_dpbf16ps(0, 1, 2);
  _tile_stored(0, out.bytes, 64);
  _tile_release();
}

constexpr Instruction kAll[] = {
    FB_RESULT("setzero_ps", kBits, kAvx512, _mm512_setzero_ps()),
    FB_RESULT("setzero_pd", kBits, kAvx512, _mm512_setzero_pd()),
    FB_RESULT("setzero_si512", kBits, kAvx512, _mm512_setzero_si512()),
    FB_RESULT("set1_ps", kFloat, kAvx512, _mm512_set1_ps(get<float>(in.a))),
    FB_RESULT("set1_pd", kDouble, kAvx512, _mm512_set1_pd(get<double>(in.a))),
    FB_RESULT("set1_epi64", kBits, kAvx512, _mm512_set1_epi64(longs[0])),
    FB_RESULT("set1_epi32", kBits, kAvx512, _mm512_set1_epi32(words[0])),
    FB_RESULT("set1_epi16", kBits, kAvx512, _mm512_set1_epi16(shorts[0])),
    FB_RESULT("set_epi16", kBits, kAvx512,
              _mm512_set_epi16(shorts[0], shorts[1], shorts[2], shorts[3], shorts[4], shorts[5],
                               shorts[6], shorts[7], shorts[8], shorts[9], shorts[10], shorts[11],
                               shorts[12], shorts[13], shorts[14], shorts[15], shorts[16],
                               shorts[17], shorts[18], shorts[19], shorts[20], shorts[21],
                               shorts[22], shorts[23], shorts[24], shorts[25], shorts[26],
                               shorts[27], shorts[28], shorts[29], shorts[30], shorts[31])),
    FB_RESULT("setr_epi32", kBits, kAvx512,
              _mm512_setr_epi32(words[0], words[1], words[2], words[3], words[4], words[5],
                                words[6], words[7], words[8], words[9], words[10], words[11],
                                words[12], words[13], words[14], words[15])),
    FB_RESULT("setr_epi64", kBits, kAvx512,
              _mm512_setr_epi64(longs[0], longs[1], longs[2], longs[3], longs[4], longs[5],
                                longs[6], longs[7])),
    FB_RESULT("castpd_ps", kBits, kAvx512, _mm512_castpd_ps(da)),
    FB_RESULT("castps_pd", kBits, kAvx512, _mm512_castps_pd(a)),
    FB_RESULT("castps_si512", kBits, kAvx512, _mm512_castps_si512(a)),
    FB_RESULT("castsi512_ps", kBits, kAvx512, _mm512_castsi512_ps(ia)),
    FB_RESULT("castsi512_si256", kBits, kAvx512, _mm512_castsi512_si256(ia)),
    FB_RESULT("extracti64x4_epi64(0)", kBits, kAvx512, _mm512_extracti64x4_epi64(ia, 0)),
    FB_RESULT("extracti64x4_epi64(1)", kBits, kAvx512, _mm512_extracti64x4_epi64(ia, 1)),
    FB_RESULT("cvtss_f32", kFloat, kAvx512, _mm512_cvtss_f32(a)),
    FB_RESULT("loadu_ps", kBits, kAvx512, _mm512_loadu_ps(in.a + 3)),
    FB_RESULT("loadu_pd", kBits, kAvx512, _mm512_loadu_pd(in.a + 3)),
    FB_RESULT("loadu_si512", kBits, kAvx512, _mm512_loadu_si512(in.a + 3)),
    FB_RESULT("maskz_loadu_ps", kBits, kAvx512, _mm512_maskz_loadu_ps(m16, in.a)),
    FB_RESULT("maskz_loadu_pd", kBits, kAvx512, _mm512_maskz_loadu_pd(m8, in.a)),
    FB_RESULT("maskz_loadu_epi8", kBits, kAvx512, _mm512_maskz_loadu_epi8(mask, in.a)),
    FB_RESULT("maskz_loadu_epi16", kBits, kAvx512, _mm512_maskz_loadu_epi16(m32, in.a)),
    FB_RESULT("maskz_loadu_epi32", kBits, kAvx512, _mm512_maskz_loadu_epi32(m16, in.a)),
    FB_EFFECT("storeu_ps", kBits, kAvx512, _mm512_storeu_ps(out.bytes + 3, a)),
    FB_EFFECT("storeu_pd", kBits, kAvx512, _mm512_storeu_pd(out.bytes + 3, da)),
    FB_EFFECT("storeu_si512", kBits, kAvx512, _mm512_storeu_si512(out.bytes + 3, ia)),
    FB_EFFECT("mask_storeu_ps", kBits, kAvx512, _mm512_mask_storeu_ps(out.bytes, m16, a)),
    FB_EFFECT("mask_storeu_pd", kBits, kAvx512, _mm512_mask_storeu_pd(out.bytes, m8, da)),
    FB_EFFECT("mask_storeu_epi16", kBits, kAvx512, _mm512_mask_storeu_epi16(out.bytes, m32, ia)),
    FB_EFFECT("mask_storeu_epi32", kBits, kAvx512, _mm512_mask_storeu_epi32(out.bytes, m16, ia)),
    FB_EFFECT("mask_storeu_epi16, 256 bits", kBits, kAvx512,
              _mm256_mask_storeu_epi16(out.bytes, m16, ha)),
    FB_RESULT("add_ps", kFloat, kAvx512, _mm512_add_ps(a, b)),
    FB_RESULT("sub_ps", kFloat, kAvx512, _mm512_sub_ps(a, b)),
    FB_RESULT("mul_ps", kFloat, kAvx512, _mm512_mul_ps(a, b)),
    FB_RESULT("div_ps", kFloat, kAvx512, _mm512_div_ps(a, b)),
    FB_RESULT("add_pd", kDouble, kAvx512, _mm512_add_pd(da, db)),
    FB_RESULT("fmadd_ps", kFloat, kAvx512, _mm512_fmadd_ps(a, b, c)),
    FB_RESULT("fmadd_pd", kDouble, kAvx512, _mm512_fmadd_pd(da, db, dc)),
    FB_RESULT("min_ps", kBits, kAvx512, _mm512_min_ps(a, b)),
    FB_RESULT("max_ps", kBits, kAvx512, _mm512_max_ps(a, b)),
    FB_RESULT("sqrt_pd", kDouble, kAvx512, _mm512_sqrt_pd(da)),
    FB_RESULT("scalef_ps", kFloat, kAvx512, _mm512_scalef_ps(a, b)),
    FB_RESULT("maskz_scalef_ps", kFloat, kAvx512, _mm512_maskz_scalef_ps(m16, a, b)),
    FB_RESULT("add_epi64", kBits, kAvx512, _mm512_add_epi64(ia, ib)),
    FB_RESULT("add_epi32", kBits, kAvx512, _mm512_add_epi32(ia, ib)),
    FB_RESULT("sub_epi32", kBits, kAvx512, _mm512_sub_epi32(ia, ib)),
    FB_RESULT("add_epi16", kBits, kAvx512, _mm512_add_epi16(ia, ib)),
    FB_RESULT("mul_epu32", kBits, kAvx512, _mm512_mul_epu32(ia, ib)),
    FB_RESULT("max_epi32", kBits, kAvx512, _mm512_max_epi32(ia, ib)),
    FB_RESULT("and_si512", kBits, kAvx512, _mm512_and_si512(ia, ib)),
    FB_RESULT("xor_si512", kBits, kAvx512, _mm512_xor_si512(ia, ib)),
    FB_RESULT("mask_or_epi32", kBits, kAvx512, _mm512_mask_or_epi32(ic, m16, ia, ib)),
    FB_RESULT("slli_epi32(7)", kBits, kAvx512, _mm512_slli_epi32(ia, 7)),
    FB_RESULT("slli_epi32(32)", kBits, kAvx512, _mm512_slli_epi32(ia, 32)),
    FB_RESULT("srli_epi32(16)", kBits, kAvx512, _mm512_srli_epi32(ia, 16)),
    FB_RESULT("srli_epi32(32)", kBits, kAvx512, _mm512_srli_epi32(ia, 32)),
    FB_RESULT("srai_epi32(9)", kBits, kAvx512, _mm512_srai_epi32(ia, 9)),
    FB_RESULT("srai_epi32(40)", kBits, kAvx512, _mm512_srai_epi32(ia, 40)),
    FB_RESULT("srli_epi64(33)", kBits, kAvx512, _mm512_srli_epi64(ia, 33)),
    FB_RESULT("srli_epi64(64)", kBits, kAvx512, _mm512_srli_epi64(ia, 64)),
    FB_RESULT("srl_epi64", kBits, kAvx512,
              _mm512_srl_epi64(ia, _mm_cvtsi64_si128(static_cast<int64_t>(mask % 67)))),
    FB_RESULT("cmpge_epu64_mask", kBits, kAvx512, _mm512_cmpge_epu64_mask(ia, ib)),
    FB_RESULT("cmp_ps_mask(LT_OQ)", kBits, kAvx512, _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ)),
    FB_RESULT("cmp_ps_mask(LE_OQ)", kBits, kAvx512, _mm512_cmp_ps_mask(a, b, _CMP_LE_OQ)),
    FB_RESULT("cmp_ps_mask(EQ_OQ)", kBits, kAvx512, _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ)),
    FB_RESULT("cmp_ps_mask("
              "GT_OQ)",
              kBits, kAvx512, _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ)),
    FB_RESULT("cmp_ps_mask(GE_OQ)", kBits, kAvx512, _mm512_cmp_ps_mask(a, b, _CMP_GE_OQ)),
    FB_RESULT("cmp_ps_mask(NLT_UQ)", kBits, kAvx512, _mm512_cmp_ps_mask(a, b, _CMP_NLT_UQ)),
    FB_RESULT("cmp_ps_mask(NEQ_UQ)", kBits, kAvx512, _mm512_cmp_ps_mask(a, b, _CMP_NEQ_UQ)),
    FB_RESULT("cmp_ps_mask(UNORD_Q)", kBits, kAvx512, _mm512_cmp_ps_mask(a, b, _CMP_UNORD_Q)),
    FB_RESULT("mask_blend_ps", kBits, kAvx512, _mm512_mask_blend_ps(m16, a, b)),
    FB_RESULT("maskz_mov_ps", kBits, kAvx512, _mm512_maskz_mov_ps(m16, a)),
    FB_RESULT("maskz_mov_ps, 256 bits", kBits, kAvx512, _mm256_maskz_mov_ps(m8, get<__m256>(in.a))),
    FB_RESULT("testn_epi8_mask, 128 bits", kBits, kAvx512, _mm_testn_epi8_mask(qa, qb)),
    FB_RESULT("unpacklo_ps", kBits, kAvx512, _mm512_unpacklo_ps(a, b)),
    FB_RESULT("unpacklo_epi16", kBits, kAvx512, _mm512_unpacklo_epi16(ia, ib)),
    FB_RESULT("unpackhi_epi16", kBits, kAvx512, _mm512_unpackhi_epi16(ia, ib)),
    FB_RESULT("unpackhi_ps", kBits, kAvx512, _mm512_unpackhi_ps(a, b)),
    FB_RESULT("unpa"
              "cklo"
              "_pd",
              kBits, kAvx512, _mm512_unpacklo_pd(da, db)),
    FB_RESULT("unpackhi_pd", kBits, kAvx512, _mm512_unpackhi_pd(da, db)),
    FB_RESULT("shuffle_ps(0x44)", kBits, kAvx512, _mm512_shuffle_ps(a, b, 0x44)),
    FB_RESULT("shuffle_ps(0x1b)", kBits, kAvx512, _mm512_shuffle_ps(a, b, 0x1b)),
    FB_RESULT("shuffle_ps(0xd8)", kBits, kAvx512, _mm512_shuffle_ps(a, b, 0xd8)),
    FB_RESULT("shuffle_f32x4(0x88)", kBits, kAvx512, _mm512_shuffle_f32x4(a, b, 0x88)),
    FB_RESULT("shuffle_f32x4(0xdd)", kBits, kAvx512, _mm512_shuffle_f32x4(a, b, 0xdd)),
    FB_RESULT("shuffle_f32x4(0x1b)", kBits, kAvx512, _mm512_shuffle_f32x4(a, b, 0x1b)),
    FB_RESULT("permutex2var_ps", kBits, kAvx512, _mm512_permutex2var_ps(a, ic, b)),
    FB_RESULT("permutex2var_epi16", kBits, kAvx512, _mm512_permutex2var_epi16(ia, ic, ib)),
    FB_RESULT("permutexvar_epi16", kBits, kAvx512, _mm512_permutexvar_epi16(ic, ia)),
    FB_RESULT("permutexvar_epi64", kBits, kAvx512, _mm512_permutexvar_epi64(ic, ia)),
    FB_RESULT("cvtepu16_epi32", kBits, kAvx512, _mm512_cvtepu16_epi32(ha)),
    FB_RESULT("cvtepi32_epi16", kBits, kAvx512, _mm512_cvtepi32_epi16(ia)),
    FB_RESULT("cvtepi32_epi8", kBits, kAvx512, _mm512_cvtepi32_epi8(ia)),
    FB_RESULT("cvtepi32_ps", kBits, kAvx512, _mm512_cvtepi32_ps(ia)),
    FB_RESULT("cvtps_epi32", kBits, kAvx512, _mm512_cvtps_epi32(a)),
    FB_RESULT("cvtph_ps", kFloat, kAvx512, _mm512_cvtph_ps(ha)),
    FB_RESULT("cvtps_ph", kBits, kAvx512,
              _mm512_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)),
    FB_RESULT("cvtneps_pbh", kBits, kBf16, _mm512_cvtneps_pbh(a)),
    FB_RESULT("cvtne2ps_pbh", kBits, kBf16, _mm512_cvtne2ps_pbh(a, b)),
    FB_RESULT("dp"
              "bf"
              "16"
              "_p"
              "s",
              kFloat, kBf16, _mm512_dpbf16_ps(a, get<__m512bh>(in.b), get<__m512bh>(in.c))),
    FB_RESULT("dpbusd_epi32", kBits, kVnni, _mm512_dpbusd_epi32(ia, ib, ic)),
    FB_RESULT("dpbusd_avx_epi32, 256 bits", kBits, kAvxVnni, _mm256_dpbusd_avx_epi32(ha, hb, hc)),
    FB_RESULT("reduce_add_ps", kFloat, kAvx512, _mm512_reduce_add_ps(a)),
    FB_RESULT("reduce_add_pd", kDouble, kAvx512, _mm512_reduce_add_pd(da)),
    FB_RESULT("reduce_add_epi32", kBits, kAvx512, _mm512_reduce_add_epi32(ia)),
    FB_RESULT("reduce_max_ps", kFloat, kAvx512, _mm512_reduce_max_ps(a)),
    FB_RESULT("reduce_max_epi32", kBits, kAvx512, _mm512_reduce_max_epi32(ia)),
    {"tile_dpbf16ps", Kind::kFloat, Extension::kAmx, multiply_tiles},
};

}  // namespace

#ifdef FB_COMPUTED
Instructions computed() {
#else
Instructions of_processor() {
#endif
  return {kAll, sizeof kAll / sizeof kAll[0]};
}

}  // namespace fullbore::emulated
