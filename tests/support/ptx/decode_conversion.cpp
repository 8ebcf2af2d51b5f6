// Conversions of numbers.
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include "fullbore/base/dtype.h"
#include "fullbore/ops/fp8.h"
#include "tests/support/ptx/operands.h"

namespace fullbore::ptx {
namespace {

enum class Rounding : uint8_t { nearest, zero, down, up, to_integer_nearest, none };
template <class T>
T to_integer(T x, Rounding rounding) {
  switch (rounding) {
    case Rounding::zero: return std::trunc(x);
    case Rounding::down: return std::floor(x);
    case Rounding::up: return std::ceil(x);
    default: return std::nearbyint(x);
  }
}
// Beyond the range the nearest number that there is; NaN: 0.
template <class To, class From>
To saturated(From x) {
  if (std::isnan(x)) return To{0};
  // The largest integer need not be a From: the next one is a power of two.
  const From end = std::ldexp(From{1}, std::numeric_limits<To>::digits);
  const From low = std::is_signed_v<To> ? -end : From{0};
  if (x >= end) return std::numeric_limits<To>::max();
  if (x < low) return std::numeric_limits<To>::min();
  return static_cast<To>(x);
}
// A signed result fills the register, which may be wider than its type: cvt.s8.s32 writes 16 bits.
template <class To>
void give_extended(Lane& lane, const Instruction& i, To x) {
  if constexpr (std::is_integral_v<To> && std::is_signed_v<To>)
    give(lane, i, 0, static_cast<int64_t>(x));
  else
    give(lane, i, 0, x);
}
template <class To, class From>
void convert(Lane& lane, const Instruction& i) {
  const From x = value<From>(lane, i, 1);
  const auto rounding = static_cast<Rounding>(i.variant);
  if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>)
    give_extended<To>(lane, i, saturated<To>(to_integer(x, rounding)));
  else if constexpr (std::is_floating_point_v<From> && std::is_same_v<From, To>)
    give(lane, i, 0, rounding == Rounding::none ? x : to_integer(x, rounding));
  else
    give_extended<To>(lane, i, static_cast<To>(x));
}
template <class From>
void convert_to_bf16(Lane& lane, const Instruction& i) {
  give(lane, i, 0, f32_to_bf16(static_cast<float>(value<From>(lane, i, 1))));
}
void convert_from_bf16(Lane& lane, const Instruction& i) {
  give(lane, i, 0, bf16_to_f32(value<uint16_t>(lane, i, 1)));
}
template <class From>
void convert_to_f16(Lane& lane, const Instruction& i) {
  give(lane, i, 0, f32_to_f16(static_cast<float>(value<From>(lane, i, 1))));
}
template <class To>
void convert_from_f16(Lane& lane, const Instruction& i) {
  const auto x = f16_to_f32(value<uint16_t>(lane, i, 1));
  if constexpr (std::is_integral_v<To>)
    give(lane, i, 0, saturated<To>(to_integer(x, static_cast<Rounding>(i.variant))));
  else
    give(lane, i, 0, static_cast<To>(x));
}
// cvt.rn.bf16x2.f32 d, a, b: a becomes the upper half.
template <auto Round>
void convert_pair(Lane& lane, const Instruction& i) {
  const uint32_t upper = Round(value<float>(lane, i, 1)), lower = Round(value<float>(lane, i, 2));
  give(lane, i, 0, upper << 16 | lower);
}
// cvt.rn.satfinite.e4m3x2.f32 d, a, b: a becomes the upper byte.
template <Fp8Format format>
void convert_pair_to_fp8(Lane& lane, const Instruction& i) {
  const unsigned upper = fp8_code(value<float>(lane, i, 1), format);
  const unsigned lower = fp8_code(value<float>(lane, i, 2), format);
  give(lane, i, 0, static_cast<uint16_t>(upper << 8 | lower));
}
// To 10 bits of mantissa, halves away from zero (rna). What is beyond the largest becomes infinity; NaN one with all bits,
// of which a product that cuts the lower 13 still makes NaN.
void convert_to_tf32(Lane& lane, const Instruction& i) {
  constexpr uint32_t kNaN = 0x7fffffffU;
  const auto bits = value<uint32_t>(lane, i, 1);
  const auto x = std::bit_cast<float>(bits);
  give(lane, i, 0, std::isnan(x) ? kNaN : std::isinf(x) ? bits : (bits + 0x1000U) & ~0x1fffU);
}

}  // namespace

bool decode_conversion(Words words, Instruction& made) {
  if (words[0] != "cvt" || words.size() < 3) return false;
  const std::optional<Type> from = type_of(words.back()), to = type_of(words[words.size() - 2]);
  if (!from || !to) return false;
  const auto rounding = has(words, "rzi")   ? Rounding::zero
                        : has(words, "rmi") ? Rounding::down
                        : has(words, "rpi") ? Rounding::up
                        : has(words, "rni") ? Rounding::to_integer_nearest
                                            : Rounding::none;
  made.variant = static_cast<int>(rounding);
  if (has(words, "rz") || has(words, "rm") || has(words, "rp")) return false;
  if (has(words, "sat")) return false;
  using Kind = Type::Kind;
  const auto reads = [&](const auto& visit) {
    return with_integer(*from, visit) || with_real(*from, visit);
  };
  if (to->kind == Kind::tf32)
    return made.execute = convert_to_tf32,
           has(words, "rna") && from->kind == Kind::real && from->bits == 32;
  // No f32 becomes a number of 8 bits in another way.
  if (to->kind == Kind::e4m3 || to->kind == Kind::e5m2)
    return made.execute = to->kind == Kind::e4m3 ? convert_pair_to_fp8<Fp8Format::e4m3>
                                                 : convert_pair_to_fp8<Fp8Format::e5m2>,
           has(words, "rn") && has(words, "satfinite") && from->kind == Kind::real &&
               from->bits == 32;
  if (to->kind == Kind::bf16 && to->count == 2)
    return made.execute = convert_pair<f32_to_bf16>, true;
  if (to->kind == Kind::real && to->bits == 16 && to->count == 2)
    return made.execute = convert_pair<f32_to_f16>, true;
  if (to->kind == Kind::bf16)
    return reads([&](auto a) { made.execute = convert_to_bf16<decltype(a)>; });
  if (from->kind == Kind::bf16)
    return made.execute = convert_from_bf16, to->kind == Kind::real && to->bits == 32;
  if (to->kind == Kind::real && to->bits == 16)
    return reads([&](auto a) { made.execute = convert_to_f16<decltype(a)>; });
  const auto writes = [&](const auto& visit) {
    return with_integer(*to, visit) || with_real(*to, visit);
  };
  if (from->kind == Kind::real && from->bits == 16)
    return writes([&](auto b) { made.execute = convert_from_f16<decltype(b)>; });
  return writes([&](auto b) {
           reads([&](auto a) { made.execute = convert<decltype(b), decltype(a)>; });
         }) &&
         made.execute != nullptr;
}

}  // namespace fullbore::ptx
