// Bits, moves and comparisons of one thread.
#include <algorithm>
#include <bit>
#include <cmath>
#include <type_traits>
#include <utility>

#include "tests/support/ptx/operands.h"

namespace fullbore::ptx {
namespace {

constexpr auto kAnd = [](auto a, auto b) { return a & b; };
constexpr auto kOr = [](auto a, auto b) { return a | b; };
constexpr auto kXor = [](auto a, auto b) { return a ^ b; };
constexpr auto kNot = [](auto a) { return ~a; };
void permute(Lane& lane, const Instruction& i) {
  const uint64_t bytes = value<uint32_t>(lane, i, 1) | uint64_t{value<uint32_t>(lane, i, 2)} << 32;
  const auto selector = value<uint32_t>(lane, i, 3);
  uint32_t result = 0;
  for (int part = 0; part < 4; ++part) {
    const uint32_t mode = selector >> (4 * part) & 15;
    auto byte = static_cast<uint32_t>(bytes >> (8 * (mode & 7)) & 255);
    if ((mode & 8) != 0) byte = (byte & 128) != 0 ? 255 : 0;
    result |= byte << (8 * part);
  }
  give(lane, i, 0, result);
}
template <class T>
void extract_bits(Lane& lane, const Instruction& i) {
  constexpr uint32_t kBits = 8 * sizeof(T);
  const uint32_t at = value<uint32_t>(lane, i, 2) & 255, count = value<uint32_t>(lane, i, 3) & 255;
  const T x = value<T>(lane, i, 1);
  if (count == 0) return give(lane, i, 0, T{0});
  T result = 0;
  for (uint32_t bit = 0; bit < kBits; ++bit) {
    // Beyond the field its sign, of signed ones.
    const uint32_t from =
        std::min(at + std::min(bit, std::is_signed_v<T> ? count - 1 : kBits), kBits - 1);
    const bool there = bit < count ? at + bit < kBits || std::is_signed_v<T> : std::is_signed_v<T>;
    if (there && (static_cast<std::make_unsigned_t<T>>(x) >> from & 1) != 0)
      result = static_cast<T>(result | static_cast<T>(std::make_unsigned_t<T>{1} << bit));
  }
  give(lane, i, 0, result);
}
void funnel_left(Lane& lane, const Instruction& i) {
  const uint64_t both = value<uint32_t>(lane, i, 1) | uint64_t{value<uint32_t>(lane, i, 2)} << 32;
  const auto by = value<uint32_t>(lane, i, 3);
  give(lane, i, 0,
       static_cast<uint32_t>(both << (i.variant != 0 ? std::min(by, 32U) : by & 31) >> 32));
}
void funnel_right(Lane& lane, const Instruction& i) {
  const uint64_t both = value<uint32_t>(lane, i, 1) | uint64_t{value<uint32_t>(lane, i, 2)} << 32;
  const auto by = value<uint32_t>(lane, i, 3);
  give(lane, i, 0, static_cast<uint32_t>(both >> (i.variant != 0 ? std::min(by, 32U) : by & 31)));
}
void logic_by_table(Lane& lane, const Instruction& i) {
  const auto a = value<uint32_t>(lane, i, 1), b = value<uint32_t>(lane, i, 2),
             c = value<uint32_t>(lane, i, 3);
  const auto table = value<uint32_t>(lane, i, 4);
  uint32_t result = 0;
  for (int bit = 0; bit < 32; ++bit) {
    const uint32_t row = (a >> bit & 1) << 2 | (b >> bit & 1) << 1 | (c >> bit & 1);
    result |= (table >> row & 1) << bit;
  }
  give(lane, i, 0, result);
}

enum Comparison : int { eq, ne, lt, le, gt, ge };
template <class T>
bool compare(int comparison, T a, T b) {
  switch (comparison) {
    case eq: return a == b;
    case ne: return a != b;
    case lt: return a < b;
    case le: return a <= b;
    case gt: return a > b;
    default: return a >= b;
  }
}
constexpr int kUnordered = 8;  ///< of reals: true where one is no number
constexpr int kIsNumber = 16, kIsNan = 32, kFlushes = 64;
constexpr int kBothResults = 128;
constexpr int kAndWith = 256, kOrWith = 512, kXorWith = 1024;

template <class T>
void set_predicate(Lane& lane, const Instruction& i) {
  const int first = (i.variant & kBothResults) != 0 ? 2 : 1;
  T a = value<T>(lane, i, first), b = value<T>(lane, i, first + 1);
  bool result = false;
  if constexpr (std::is_floating_point_v<T>) {
    if ((i.variant & kFlushes) != 0) a = flushed(a), b = flushed(b);
    const bool unordered = std::isnan(a) || std::isnan(b);
    if ((i.variant & kIsNumber) != 0)
      result = !unordered;
    else if ((i.variant & kIsNan) != 0)
      result = unordered;
    else if (unordered)
      result = (i.variant & kUnordered) != 0;
    else
      result = compare(i.variant & 7, a, b);
  } else {
    result = compare(i.variant & 7, a, b);
  }
  bool contrary = !result;
  if ((i.variant & (kAndWith | kOrWith | kXorWith)) != 0) {
    const bool other = value<bool>(lane, i, first + 2);
    const auto join = [&](bool x) {
      return (i.variant & kAndWith) != 0  ? x && other
             : (i.variant & kOrWith) != 0 ? x || other
                                          : x != other;
    };
    result = join(result), contrary = join(contrary);
  }
  give(lane, i, 0, result);
  if (first == 2) give(lane, i, 1, contrary);
}
template <class T>
void select(Lane& lane, const Instruction& i) {
  give(lane, i, 0, value<bool>(lane, i, 3) ? value<T>(lane, i, 1) : value<T>(lane, i, 2));
}
template <class T>
void move(Lane& lane, const Instruction& i) {
  give(lane, i, 0, value<T>(lane, i, 1));
}
// mov.b32 %r, {%rs1, %rs2} and back: `variant` operands of so many bits each.
void pack(Lane& lane, const Instruction& i) {
  const int parts = i.operands - 1, bits = 8 * i.bytes / parts;
  uint64_t all = 0;
  for (int part = 0; part < parts; ++part) {
    const uint64_t mask = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
    all |= (value<uint64_t>(lane, i, 1 + part) & mask) << (part * bits);
  }
  give(lane, i, 0, all);
}
void unpack(Lane& lane, const Instruction& i) {
  const int parts = i.operands - 1, bits = 8 * i.bytes / parts;
  const auto all = value<uint64_t>(lane, i, parts);
  for (int part = 0; part < parts; ++part) {
    const uint64_t mask = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
    give(lane, i, part, (all >> (part * bits)) & mask);
  }
}

}  // namespace

bool decode_logic(Words words, const Type& type, Instruction& made) {
  const std::string_view word = words[0];
  if (type.kind == Type::Kind::predicate) {
    constexpr auto kNotBool = [](auto a) { return !a; };
    if (word == "not") return made.execute = unary<kNotBool, bool>, true;
    if (word == "mov") return made.execute = move<bool>, true;
    if (word == "and") return made.execute = binary<kAnd, bool>, true;
    if (word == "or") return made.execute = binary<kOr, bool>, true;
    if (word == "xor") return made.execute = binary<kXor, bool>, true;
    return false;
  }
  if (word == "and") return for_integers<kAnd>(type, made);
  if (word == "or") return for_integers<kOr>(type, made);
  if (word == "xor") return for_integers<kXor>(type, made);
  if (word == "not")
    return with_integer(type, [&](auto zero) { made.execute = unary<kNot, decltype(zero)>; });
  constexpr auto kCount = [](auto a) {
    return std::popcount(static_cast<std::make_unsigned_t<decltype(a)>>(a));
  };
  constexpr auto kZeros = [](auto a) {
    return std::countl_zero(static_cast<std::make_unsigned_t<decltype(a)>>(a));
  };
  constexpr auto kReverse = [](auto a) {
    decltype(a) result = 0;
    for (size_t bit = 0; bit < 8 * sizeof(a); ++bit)
      result = static_cast<decltype(a)>(result << 1 | (a >> bit & 1));
    return result;
  };
  if (word == "popc")
    return with_integer(type, [&](auto zero) { made.execute = unary<kCount, decltype(zero)>; });
  if (word == "clz")
    return with_integer(type, [&](auto zero) { made.execute = unary<kZeros, decltype(zero)>; });
  if (word == "brev")
    return with_integer(type, [&](auto zero) { made.execute = unary<kReverse, decltype(zero)>; });
  if (word == "bfe")
    return with_integer(type,
                        [&](auto zero) {
                          if constexpr (sizeof(zero) >= 4)
                            made.execute = extract_bits<decltype(zero)>;
                        }) &&
           made.execute != nullptr;
  if (word == "prmt" && words.size() == 2) return made.execute = permute, true;
  if (word == "lop3") return made.execute = logic_by_table, true;
  if (word == "shf") {
    made.variant = has(words, "clamp") ? 1 : 0;
    return made.execute = has(words, "l") ? funnel_left : funnel_right, true;
  }
  if (word == "mov") {
    if (made.operands > 2) {
      made.bytes = type.bits / 8;
      // A vector comes first where it is written.
      made.execute = made.variant != 0 ? unpack : pack;
      return type.bits <= 64;
    }
    return with_integer(type, [&](auto zero) { made.execute = move<decltype(zero)>; }) ||
           with_real(type, [&](auto zero) { made.execute = move<decltype(zero)>; });
  }
  if (word == "selp")
    return with_integer(type, [&](auto zero) { made.execute = select<decltype(zero)>; }) ||
           with_real(type, [&](auto zero) { made.execute = select<decltype(zero)>; }) ||
           (type.bits == 16 && (made.execute = select<uint16_t>, true));
  return false;
}

bool decode_comparison(Words words, const Type& type, Instruction& made) {
  if (words[0] != "setp") return false;
  static constexpr std::pair<std::string_view, int> kNames[] = {{"eq", eq},
                                                                {"ne", ne},
                                                                {"lt", lt},
                                                                {"le", le},
                                                                {"gt", gt},
                                                                {"ge", ge},
                                                                {"lo", lt},
                                                                {"ls", le},
                                                                {"hi", gt},
                                                                {"hs", ge},
                                                                {"equ", eq | kUnordered},
                                                                {"neu", ne | kUnordered},
                                                                {"ltu", lt | kUnordered},
                                                                {"leu", le | kUnordered},
                                                                {"gtu", gt | kUnordered},
                                                                {"geu", ge | kUnordered},
                                                                {"num", kIsNumber},
                                                                {"nan", kIsNan}};
  const auto* const found =
      std::ranges::find(kNames, words[1], &std::pair<std::string_view, int>::first);
  if (found == std::end(kNames)) return false;
  int variant = found->second;
  if (has(words, "ftz")) variant |= kFlushes;
  const bool joins = has(words, "and") || has(words, "or") || has(words, "xor");
  if (joins) variant |= has(words, "and") ? kAndWith : has(words, "or") ? kOrWith : kXorWith;
  if (made.operands == (joins ? 5 : 4)) variant |= kBothResults;
  made.variant = variant;
  return with_integer(type, [&](auto zero) { made.execute = set_predicate<decltype(zero)>; }) ||
         with_real(type, [&](auto zero) { made.execute = set_predicate<decltype(zero)>; });
}

}  // namespace fullbore::ptx
