#pragma once
#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

#include "tests/support/ptx/machine.h"
#include "tests/support/ptx/parse.h"

// What the parts of decode() share: operands as numbers of C++, and their types.
namespace fullbore::ptx {

using Words = std::span<const std::string_view>;

inline bool has(Words words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

// The last type that is named; the one before it, of conversions.
inline std::optional<Type> last_type(Words words) { return type_of(words.back()); }

template <class T>
T value(Lane& lane, const Instruction& i, int operand) {
  const uint64_t bits = lane.slots()[i.slots[static_cast<size_t>(operand)]];
  if constexpr (std::is_same_v<T, bool>) {
    return (bits & 1) != 0;
  } else {
    T result;
    std::memcpy(&result, &bits, sizeof(T));
    return result;
  }
}
// Registers are as wide as their type: what lies above is not read by what reads that type.
template <class T>
void give(Lane& lane, const Instruction& i, int operand, T result) {
  static_assert(sizeof(T) <= sizeof(uint64_t));
  uint64_t bits = 0;
  std::memcpy(&bits, &result, sizeof(T));
  lane.slots()[i.slots[static_cast<size_t>(operand)]] = bits;
}

/// Calls visit(T{}) with the C++ type of an integer or bits.
template <class Visit>
bool with_integer(const Type& type, const Visit& visit) {
  if (type.count != 1 || type.kind > Type::Kind::is_unsigned) return false;
  const bool is_signed = type.kind == Type::Kind::is_signed;
  switch (type.bits) {
    case 8: is_signed ? visit(int8_t{}) : visit(uint8_t{}); return true;
    case 16: is_signed ? visit(int16_t{}) : visit(uint16_t{}); return true;
    case 32: is_signed ? visit(int32_t{}) : visit(uint32_t{}); return true;
    case 64: is_signed ? visit(int64_t{}) : visit(uint64_t{}); return true;
    default: return false;
  }
}
template <class Visit>
bool with_real(const Type& type, const Visit& visit) {
  if (type.kind != Type::Kind::real || type.count != 1 || type.bits < 32) return false;
  type.bits == 32 ? visit(float{}) : visit(double{});
  return true;
}

template <class T>
T flushed(T x) {
  return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(T{0}, x) : x;
}

// Results: the first operand. `ftz`: denormal operands and results are zeros of their sign.
template <auto F, class T>
void unary(Lane& lane, const Instruction& i) {
  if constexpr (std::is_floating_point_v<T>) {
    if (i.variant != 0)
      return give(lane, i, 0, flushed(static_cast<T>(F(flushed(value<T>(lane, i, 1))))));
  }
  give(lane, i, 0, static_cast<T>(F(value<T>(lane, i, 1))));
}
template <auto F, class T>
void binary(Lane& lane, const Instruction& i) {
  if constexpr (std::is_floating_point_v<T>) {
    if (i.variant != 0)
      return give(
          lane, i, 0,
          flushed(static_cast<T>(F(flushed(value<T>(lane, i, 1)), flushed(value<T>(lane, i, 2))))));
  }
  give(lane, i, 0, static_cast<T>(F(value<T>(lane, i, 1), value<T>(lane, i, 2))));
}
template <auto F, class T>
void ternary(Lane& lane, const Instruction& i) {
  if constexpr (std::is_floating_point_v<T>) {
    if (i.variant != 0)
      return give(
          lane, i, 0,
          flushed(static_cast<T>(F(flushed(value<T>(lane, i, 1)), flushed(value<T>(lane, i, 2)),
                                   flushed(value<T>(lane, i, 3))))));
  }
  give(lane, i, 0,
       static_cast<T>(F(value<T>(lane, i, 1), value<T>(lane, i, 2), value<T>(lane, i, 3))));
}

// Integers wrap around.
template <auto F>
bool for_integers(const Type& type, Instruction& made,
                  void (*)(Lane&, const Instruction&) = nullptr) {
  return with_integer(type, [&](auto zero) { made.execute = binary<F, decltype(zero)>; });
}
template <auto F>
bool for_numbers(const Type& type, Instruction& made) {
  return for_integers<F>(type, made) ||
         with_real(type, [&](auto zero) { made.execute = binary<F, decltype(zero)>; });
}
template <auto F>
bool for_one_number(const Type& type, Instruction& made) {
  return with_integer(type, [&](auto zero) { made.execute = unary<F, decltype(zero)>; }) ||
         with_real(type, [&](auto zero) { made.execute = unary<F, decltype(zero)>; });
}
template <auto F>
bool for_one_real(const Type& type, Instruction& made) {
  return with_real(type, [&](auto zero) { made.execute = unary<F, decltype(zero)>; });
}

// Each knows some of the instructions; false: not this one.
bool decode_arithmetic(Words words, const Type& type, Instruction& made);
bool decode_logic(Words words, const Type& type, Instruction& made);
bool decode_comparison(Words words, const Type& type, Instruction& made);
bool decode_conversion(Words words, Instruction& made);
bool decode_bits(Words words, Instruction& made);
bool decode_carry(Words words, Instruction& made);

}  // namespace fullbore::ptx
