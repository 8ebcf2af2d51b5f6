#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

#include "fullbore/base/dtype.h"

namespace fullbore {

/// Floating numbers of 8 bits: a sign, an exponent, a fraction. Micikevicius et al. 2022, arXiv:2209.05433, table 1.
enum class Fp8Format : uint8_t {
  e4m3,  ///< 4 bits of exponent, 3 of fraction; no infinity; 448 at most, 2^-9 at least
  e5m2   ///< 5 and 2, as the upper half of f16; 57344 at most, 2^-16 at least
};

struct Fp8Facts {
  std::string_view name;
  int fraction_bits;
  int least_exponent;  ///< of numbers that are not subnormal
  double largest;
  uint8_t largest_code;
};
constexpr Fp8Facts fp8_facts(Fp8Format format) {
  return format == Fp8Format::e4m3 ? Fp8Facts{"e4m3", 3, -6, 448, 0x7e}
                                   : Fp8Facts{"e5m2", 2, -14, 57344, 0x7b};
}

constexpr std::optional<Fp8Format> parse_fp8_format(std::string_view name) {
  if (name == "e4m3") return Fp8Format::e4m3;
  if (name == "e5m2") return Fp8Format::e5m2;
  return std::nullopt;
}

/// The code of the nearest number, ties to that with an even fraction; beyond the largest one that one, of x's sign,
/// infinity too; of NaN 0x7f. What cvt.rn.satfinite makes (PTX ISA 8.4, section 9.7.9.21).
inline uint8_t fp8_code(double x, Fp8Format format) {
  const Fp8Facts facts = fp8_facts(format);
  if (std::isnan(x)) return 0x7f;
  const uint8_t sign = std::signbit(x) ? 0x80 : 0;
  const double size = std::fabs(x);
  if (size >= facts.largest) return sign | facts.largest_code;
  if (size == 0) return sign;
  const int exponent = std::max(std::ilogb(size), facts.least_exponent);
  // In units of the last place; codes go on from one exponent to the next, so that rounding up may carry.
  const auto units =
      static_cast<int>(std::nearbyint(std::ldexp(size, facts.fraction_bits - exponent)));
  return static_cast<uint8_t>(sign |
                              (((exponent - facts.least_exponent) << facts.fraction_bits) + units));
}

inline double fp8_value(uint8_t code, Fp8Format format) {
  const Fp8Facts facts = fp8_facts(format);
  const double sign = (code & 0x80) != 0 ? -1 : 1;
  const int size = code & 0x7f;
  if (size > facts.largest_code)
    return format == Fp8Format::e5m2 && size == facts.largest_code + 1
               ? sign * std::numeric_limits<double>::infinity()
               : std::numeric_limits<double>::quiet_NaN();
  const int exponent = size >> facts.fraction_bits, ones = 1 << facts.fraction_bits;
  const int fraction = size & (ones - 1);
  const int units = exponent == 0 ? fraction : fraction + ones;
  return sign *
         std::ldexp(units, std::max(exponent, 1) - 1 + facts.least_exponent - facts.fraction_bits);
}

/// What products are made of: x scale, rounded to `computed` first, in which kernels multiply (f32), and then to the
/// format. An infinite x gives NaN, not the largest number: a step that has overflowed is to be seen as such.
inline double fp8_quantized(double x, double scale, Fp8Format format, DType computed = DType::f32) {
  if (std::isinf(x)) return std::numeric_limits<double>::quiet_NaN();
  return fp8_value(fp8_code(round_to_dtype(x * scale, computed), format), format);
}

}  // namespace fullbore
