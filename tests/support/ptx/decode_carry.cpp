// Sums and differences of several words: with the carry of the one before, or for the next.
#include "tests/support/ptx/operands.h"

namespace fullbore::ptx {
namespace {

// d = a + b + carry, or a - (b + carry), of words without a sign; the carry is that of the thread. Source: PTX ISA 9.7.2.
template <class T, bool kSubtracts, bool kTakes, bool kGives>
void with_carry(Lane& lane, const Instruction& i) {
  const auto a = value<T>(lane, i, 1), b = value<T>(lane, i, 2);
  const T carry = kTakes && lane.carry() ? 1 : 0;
  const T second = b + carry;
  const T result = kSubtracts ? a - second : a + second;
  const bool overflows = second < b || (kSubtracts ? a < second : result < a);
  give(lane, i, 0, result);
  if constexpr (kGives) lane.carry() = overflows;
}

template <class T>
Execute choose(bool subtracts, bool takes, bool gives) {
  if (takes && gives)
    return subtracts ? with_carry<T, true, true, true> : with_carry<T, false, true, true>;
  if (takes)
    return subtracts ? with_carry<T, true, true, false> : with_carry<T, false, true, false>;
  return subtracts ? with_carry<T, true, false, true> : with_carry<T, false, false, true>;
}

}  // namespace

bool decode_carry(Words words, Instruction& made) {
  const bool takes = words[0] == "addc" || words[0] == "subc", gives = has(words, "cc");
  const bool subtracts = words[0] == "sub" || words[0] == "subc";
  if (!takes && !(gives && (subtracts || words[0] == "add"))) return false;
  if (words.size() != (gives ? 3U : 2U)) return false;
  const std::optional<Type> type = type_of(words.back());
  if (!type || type->kind > Type::Kind::is_unsigned || type->count != 1) return false;
  made.results = 1;
  if (type->bits == 32) made.execute = choose<uint32_t>(subtracts, takes, gives);
  if (type->bits == 64) made.execute = choose<uint64_t>(subtracts, takes, gives);
  return made.execute != nullptr;
}

}  // namespace fullbore::ptx
