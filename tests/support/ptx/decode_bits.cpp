// Fields of bits, and numbers of 16 bits as such.
#include <algorithm>

#include "tests/support/ptx/operands.h"

namespace fullbore::ptx {
namespace {

// bfi.type f, a, b, c, d: b with the lowest d bits of a from bit c on. Source: PTX ISA 9.7.1.20.
template <class T>
void insert_bits(Lane& lane, const Instruction& i) {
  constexpr uint32_t kBits = 8 * sizeof(T);
  const uint32_t at = value<uint32_t>(lane, i, 3) & 255, count = value<uint32_t>(lane, i, 4) & 255;
  const T a = value<T>(lane, i, 1);
  T result = value<T>(lane, i, 2);
  for (uint32_t bit = 0; bit < count && at + bit < kBits; ++bit) {
    const T mask = T{1} << (at + bit);
    result = (a >> bit & 1) != 0 ? result | mask : result & ~mask;
  }
  give(lane, i, 0, result);
}

// abs and neg of f16 and bf16: the sign alone.
template <bool kClears>
void change_sign(Lane& lane, const Instruction& i) {
  constexpr uint16_t kSign = 0x8000;
  const auto x = value<uint16_t>(lane, i, 1);
  give(lane, i, 0, static_cast<uint16_t>(kClears ? x & ~kSign : x ^ kSign));
}

}  // namespace

bool decode_bits(Words words, Instruction& made) {
  made.results = 1;
  if (words.size() != 2) return false;
  if (words[1] == "bf16" || words[1] == "f16") {
    if (words[0] == "abs") made.execute = change_sign<true>;
    if (words[0] == "neg") made.execute = change_sign<false>;
    return made.execute != nullptr;
  }
  if (words[0] != "bfi") return false;
  if (words[1] == "b32") made.execute = insert_bits<uint32_t>;
  if (words[1] == "b64") made.execute = insert_bits<uint64_t>;
  return made.execute != nullptr;
}

}  // namespace fullbore::ptx
