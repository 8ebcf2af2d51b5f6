// Arithmetic and functions of one thread.
#include <algorithm>
#include <cmath>
#include <type_traits>

#include "tests/support/ptx/operands.h"

namespace fullbore::ptx {
namespace {

// Integers wrap around.
template <class T>
auto wrap(T x) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<uint64_t>(x);
  else
    return x;
}
constexpr auto kAdd = [](auto a, auto b) { return wrap(a) + wrap(b); };
constexpr auto kSub = [](auto a, auto b) { return wrap(a) - wrap(b); };
constexpr auto kMul = [](auto a, auto b) { return wrap(a) * wrap(b); };
constexpr auto kMad = [](auto a, auto b, auto c) { return wrap(a) * wrap(b) + wrap(c); };
constexpr auto kFma = [](auto a, auto b, auto c) { return std::fma(a, b, c); };
constexpr auto kNeg = [](auto a) {
  if constexpr (std::is_integral_v<decltype(a)>)
    return 0 - wrap(a);
  else
    return -a;
};
constexpr auto kAbs = [](auto a) {
  if constexpr (std::is_unsigned_v<decltype(a)>)
    return a;
  else if constexpr (std::is_integral_v<decltype(a)>)
    return a < 0 ? 0 - wrap(a) : wrap(a);
  else
    return std::abs(a);
};
constexpr auto kMin = [](auto a, auto b) {
  if constexpr (std::is_floating_point_v<decltype(a)>)
    return std::fmin(a, b);
  else
    return std::min(a, b);
};
constexpr auto kMax = [](auto a, auto b) {
  if constexpr (std::is_floating_point_v<decltype(a)>)
    return std::fmax(a, b);
  else
    return std::max(a, b);
};
constexpr auto kMinNan = [](auto a, auto b) {
  return std::isnan(a) ? a : std::isnan(b) ? b : std::fmin(a, b);
};
constexpr auto kMaxNan = [](auto a, auto b) {
  return std::isnan(a) ? a : std::isnan(b) ? b : std::fmax(a, b);
};
// By zero a GPU gives all ones; the overflow of the least number by -1 wraps.
constexpr auto kDiv = [](auto a, auto b) {
  using T = decltype(a);
  if constexpr (std::is_floating_point_v<T>)
    return a / b;
  else if (b == 0)
    return static_cast<T>(~T{0});
  else if constexpr (std::is_signed_v<T>)
    return b == -1 ? static_cast<T>(0 - wrap(a)) : static_cast<T>(a / b);
  else
    return static_cast<T>(a / b);
};
constexpr auto kRem = [](auto a, auto b) {
  using T = decltype(a);
  if (b == 0) return a;
  if constexpr (std::is_signed_v<T>) {
    if (b == -1) return T{0};
  }
  return static_cast<T>(a % b);
};

template <class T>
using Wider = std::conditional_t<
    sizeof(T) == 2, std::conditional_t<std::is_signed_v<T>, int32_t, uint32_t>,
    std::conditional_t<sizeof(T) == 4, std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>,
                       std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>>>;
template <class T>
void multiply_wide(Lane& lane, const Instruction& i) {
  using W = Wider<T>;
  give(lane, i, 0,
       static_cast<W>(static_cast<W>(value<T>(lane, i, 1)) * static_cast<W>(value<T>(lane, i, 2))));
}
template <class T>
void multiply_add_wide(Lane& lane, const Instruction& i) {
  using W = Wider<T>;
  const W product = static_cast<W>(value<T>(lane, i, 1)) * static_cast<W>(value<T>(lane, i, 2));
  give(lane, i, 0, static_cast<W>(wrap(product) + wrap(value<W>(lane, i, 3))));
}
template <class T>
void multiply_high(Lane& lane, const Instruction& i) {
  using W = Wider<T>;
  const W product = static_cast<W>(value<T>(lane, i, 1)) * static_cast<W>(value<T>(lane, i, 2));
  give(lane, i, 0, static_cast<T>(product >> (8 * sizeof(T))));
}
// Shifts of the width and beyond leave nothing, or the sign.
template <class T>
void shift_left(Lane& lane, const Instruction& i) {
  const auto by = value<uint32_t>(lane, i, 2);
  give(lane, i, 0, by >= 8 * sizeof(T) ? T{0} : static_cast<T>(value<T>(lane, i, 1) << by));
}
template <class T>
void shift_right(Lane& lane, const Instruction& i) {
  const uint32_t by = std::min<uint32_t>(value<uint32_t>(lane, i, 2), 8 * sizeof(T));
  const T x = value<T>(lane, i, 1);
  if (by < 8 * sizeof(T)) return give(lane, i, 0, static_cast<T>(x >> by));
  give(lane, i, 0, std::is_signed_v<T> && x < 0 ? static_cast<T>(~T{0}) : T{0});
}

// The functions of the special unit are approximations; here they are the functions.
bool decode_function(Words words, const Type& type, Instruction& made) {
  const std::string_view word = words[0];
  made.variant = has(words, "ftz") ? 1 : 0;
  constexpr auto kReciprocal = [](auto x) { return 1 / x; };
  constexpr auto kRoot = [](auto x) { return std::sqrt(x); };
  constexpr auto kReciprocalRoot = [](auto x) { return 1 / std::sqrt(x); };
  constexpr auto kExp2 = [](auto x) { return std::exp2(x); };
  constexpr auto kLog2 = [](auto x) { return std::log2(x); };
  constexpr auto kSin = [](auto x) { return std::sin(x); };
  constexpr auto kCos = [](auto x) { return std::cos(x); };
  constexpr auto kTanh = [](auto x) { return std::tanh(x); };
  // copysign d, a, b: b with the sign of a. Source: PTX ISA, copysign.
  constexpr auto kWithSign = [](auto a, auto b) { return std::copysign(b, a); };
  if (word == "rcp") return for_one_real<kReciprocal>(type, made);
  if (word == "sqrt") return for_one_real<kRoot>(type, made);
  if (word == "rsqrt") return for_one_real<kReciprocalRoot>(type, made);
  if (word == "ex2") return for_one_real<kExp2>(type, made);
  if (word == "lg2") return for_one_real<kLog2>(type, made);
  if (word == "sin") return for_one_real<kSin>(type, made);
  if (word == "cos") return for_one_real<kCos>(type, made);
  if (word == "tanh") return for_one_real<kTanh>(type, made);
  if (word == "copysign")
    return with_real(type, [&](auto zero) { made.execute = binary<kWithSign, decltype(zero)>; });
  return false;
}

}  // namespace

bool decode_arithmetic(Words words, const Type& type, Instruction& made) {
  const std::string_view word = words[0];
  const bool real = type.kind == Type::Kind::real;
  if (real) made.variant = has(words, "ftz") ? 1 : 0;
  // Only rounding to nearest is made.
  if (real && (has(words, "rz") || has(words, "rm") || has(words, "rp") || has(words, "sat")))
    return false;
  if (word == "add") return for_numbers<kAdd>(type, made);
  if (word == "sub") return for_numbers<kSub>(type, made);
  if (word == "div") return for_numbers<kDiv>(type, made);
  if (word == "rem") return for_integers<kRem>(type, made);
  if (word == "neg") return for_one_number<kNeg>(type, made);
  if (word == "abs") return for_one_number<kAbs>(type, made);
  if (word == "min" || word == "max") {
    const bool least = word == "min";
    if (real && has(words, "NaN")) {
      with_real(type, [&](auto zero) {
        using T = decltype(zero);
        made.execute = least ? binary<kMinNan, T> : binary<kMaxNan, T>;
      });
      return true;
    }
    return least ? for_numbers<kMin>(type, made) : for_numbers<kMax>(type, made);
  }
  if (word == "mul") {
    if (has(words, "wide") || has(words, "hi"))
      return with_integer(type,
                          [&](auto zero) {
                            using T = decltype(zero);
                            if constexpr (sizeof(T) > 1)
                              if (has(words, "hi")) made.execute = multiply_high<T>;
                            if constexpr (sizeof(T) == 2 || sizeof(T) == 4)
                              if (has(words, "wide")) made.execute = multiply_wide<T>;
                          }) &&
             made.execute != nullptr;
    return for_numbers<kMul>(type, made);
  }
  if (word == "mad" && has(words, "wide"))
    return with_integer(type,
                        [&](auto zero) {
                          using T = decltype(zero);
                          if constexpr (sizeof(T) == 2 || sizeof(T) == 4)
                            made.execute = multiply_add_wide<T>;
                        }) &&
           made.execute != nullptr;
  if (word == "mad" && !real && has(words, "lo"))
    return with_integer(type, [&](auto zero) { made.execute = ternary<kMad, decltype(zero)>; });
  if (word == "fma" || (word == "mad" && real))
    return with_real(type, [&](auto zero) { made.execute = ternary<kFma, decltype(zero)>; });
  if (word == "shl")
    return with_integer(type, [&](auto zero) { made.execute = shift_left<decltype(zero)>; });
  if (word == "shr")
    return with_integer(type, [&](auto zero) { made.execute = shift_right<decltype(zero)>; });
  return decode_function(words, type, made);
}

}  // namespace fullbore::ptx
