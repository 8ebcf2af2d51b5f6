#include "tests/support/ptx/meetings.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <string>

#include "fullbore/base/dtype.h"
#include "fullbore/ops/fp8.h"
#include "tests/support/ptx/operands.h"

namespace fullbore::ptx {
namespace {

constexpr int kLanes = 32;

uint64_t& slot(Lane& lane, const Instruction& i, int operand) {
  return lane.slots()[i.slots[static_cast<size_t>(operand)]];
}
uint32_t word(Lane& lane, const Instruction& i, int operand) {
  return static_cast<uint32_t>(slot(lane, i, operand));
}

enum Shuffle : int { index, up, down, butterfly };
constexpr int kTellsWhether = 8;  ///< a second result: was there such a lane?

// d{|p}, a, b, c, mask. Source: PTX ISA 9.7.9.6, with the clamp in c and the segment above it.
void shuffle(std::span<Lane* const> lanes, const Instruction& i) {
  const int first = (i.variant & kTellsWhether) != 0 ? 2 : 1;
  std::array<uint32_t, kLanes> given{}, taken{};
  std::array<bool, kLanes> there{};
  for (int lane = 0; lane < kLanes; ++lane)
    if (lanes[static_cast<size_t>(lane)] != nullptr)
      given[static_cast<size_t>(lane)] = word(*lanes[static_cast<size_t>(lane)], i, first);
  for (int lane = 0; lane < kLanes; ++lane) {
    Lane* const self = lanes[static_cast<size_t>(lane)];
    if (self == nullptr) continue;
    const int b = static_cast<int>(word(*self, i, first + 1) & 31);
    const uint32_t c = word(*self, i, first + 2);
    const int clamp = static_cast<int>(c & 31), segment = static_cast<int>(c >> 8 & 31);
    const int last = (lane & segment) | (clamp & ~segment), begin = lane & segment;
    int from = 0;
    bool valid = false;
    switch (i.variant & 7) {
      case index: from = begin | (b & ~segment), valid = from <= last; break;
      case up: from = lane - b, valid = from >= last; break;
      case down: from = lane + b, valid = from <= last; break;
      default: from = lane ^ b, valid = from <= last;
    }
    if (!valid) from = lane;
    if (lanes[static_cast<size_t>(from)] == nullptr)
      self->fail("a shuffle takes from lane " + std::to_string(from) +
                 ", which does not take part");
    taken[static_cast<size_t>(lane)] = given[static_cast<size_t>(from)];
    there[static_cast<size_t>(lane)] = valid;
  }
  for (size_t lane = 0; lane < kLanes; ++lane)
    if (lanes[lane] != nullptr) {
      slot(*lanes[lane], i, 0) = taken[lane];
      if (first == 2) slot(*lanes[lane], i, 1) = there[lane] ? 1 : 0;
    }
}

enum Vote : int { all, any, uniform, ballot };
void vote(std::span<Lane* const> lanes, const Instruction& i) {
  uint32_t yes = 0, voters = 0;
  for (size_t lane = 0; lane < kLanes; ++lane)
    if (lanes[lane] != nullptr) {
      voters |= 1U << lane;
      const bool said = (slot(*lanes[lane], i, 1) & 1) != 0;
      if (said) yes |= 1U << lane;
    }
  const int kind = i.variant;
  const uint64_t result = kind == ballot ? yes
                          : kind == all  ? yes == voters
                          : kind == any  ? yes != 0
                                         : yes == 0 || yes == voters;
  for (Lane* const lane : lanes)
    if (lane != nullptr) slot(*lane, i, 0) = result;
}

float half(uint32_t pair, int which, bool is_bf16) {
  const auto bits = static_cast<uint16_t>(pair >> (16 * which));
  return is_bf16 ? bf16_to_f32(bits) : f16_to_f32(bits);
}

// Of 8-bit floats: that, and 1 if a is e5m2, and 2 if b is.
enum Product : int { pairs_f16, pairs_bf16, tf32, bytes, fp8 };
constexpr int kAIsE5m2 = 1, kBIsE5m2 = 2;

// What the lower 13 bits of an operand do is not defined: whoever leaves them there has forgotten to round.
float of_tf32(Lane& lane, uint32_t bits) {
  const auto x = std::bit_cast<float>(bits);
  if ((bits & 0x1fffU) != 0 && !std::isnan(x)) lane.fail("an operand of the product is no tf32");
  return std::bit_cast<float>(bits & ~0x1fffU);
}

// d [16,8] = a [16,K] b [K,8] + c [16,8] by the fragments of PTX ISA 9.7.14.5: lane 4 g + t has of d and c rows g and g + 8,
// columns 2 t and 2 t + 1; of a the same rows, of b column g, and along K what it holds of four in a row by t.
// A tensor core sums in an order and with roundings that are not documented; here in double, rounded once.
void product(std::span<Lane* const> lanes, const Instruction& i) {
  const int kind = i.variant & 7, depth = i.variant >> 3;
  std::array<std::array<double, 32>, 16> a{};
  std::array<std::array<double, 8>, 32> b{};
  const int per_word = kind == tf32 ? 1 : kind >= bytes ? 4 : 2;
  const int a_words = depth * 16 / kLanes / per_word;
  const int b_words = a_words / 2;
  const auto format_of = [&](int is_e5m2) {
    return ((kind - fp8) & is_e5m2) != 0 ? Fp8Format::e5m2 : Fp8Format::e4m3;
  };
  for (int lane = 0; lane < kLanes; ++lane) {
    Lane& self = *lanes[static_cast<size_t>(lane)];
    const int group = lane / 4, t = lane % 4;
    const auto number = [&](uint32_t bits, int part, int is_e5m2) -> double {
      if (kind >= fp8)
        return fp8_value(static_cast<uint8_t>(bits >> (8 * part)), format_of(is_e5m2));
      if (kind == tf32) return of_tf32(self, bits);
      if (kind == bytes) return static_cast<int8_t>(bits >> (8 * part));
      return half(bits, part, kind == pairs_bf16);
    };
    for (int w = 0; w < a_words; ++w)
      for (int part = 0; part < per_word; ++part) {
        const int k = (w / 2) * 4 * per_word + t * per_word + part;
        a[static_cast<size_t>(group + 8 * (w % 2))][static_cast<size_t>(k)] =
            number(word(self, i, 4 + w), part, kAIsE5m2);
      }
    for (int w = 0; w < b_words; ++w)
      for (int part = 0; part < per_word; ++part) {
        const int k = w * 4 * per_word + t * per_word + part;
        b[static_cast<size_t>(k)][static_cast<size_t>(group)] =
            number(word(self, i, 4 + a_words + w), part, kBIsE5m2);
      }
  }
  for (int lane = 0; lane < kLanes; ++lane) {
    Lane& self = *lanes[static_cast<size_t>(lane)];
    const int group = lane / 4, t = lane % 4;
    std::array<uint32_t, 4> sums{};
    for (int part = 0; part < 4; ++part) {
      const auto row = static_cast<size_t>(group + 8 * (part / 2)),
                 column = static_cast<size_t>(2 * t + part % 2);
      const uint32_t bits = word(self, i, 4 + a_words + b_words + part);
      double sum = kind == bytes ? static_cast<double>(static_cast<int32_t>(bits))
                                 : static_cast<double>(std::bit_cast<float>(bits));
      for (size_t k = 0; k < static_cast<size_t>(depth); ++k) sum += a[row][k] * b[k][column];
      sums[static_cast<size_t>(part)] = kind == bytes
                                            ? static_cast<uint32_t>(static_cast<int64_t>(sum))
                                            : std::bit_cast<uint32_t>(static_cast<float>(sum));
    }
    for (int part = 0; part < 4; ++part) slot(self, i, part) = sums[static_cast<size_t>(part)];
  }
}

// Lane 8 m + r has the address of row r of matrix m, 16 bytes; lane l gets the pair l % 4 of row l / 4, of the
// transpose the elements (2 (l % 4), l / 4) and the next below.
void load_matrices(std::span<Lane* const> lanes, const Instruction& i) {
  const int count = i.elements;
  const bool transposes = i.variant != 0;
  std::array<std::array<std::array<uint16_t, 8>, 8>, 4> matrices{};
  for (int matrix = 0; matrix < count; ++matrix)
    for (int row = 0; row < 8; ++row) {
      Lane& owner = *lanes[static_cast<size_t>(8 * matrix + row)];
      const uint64_t address = slot(owner, i, count) + static_cast<uint64_t>(i.offset);
      const std::byte* const from = owner.reach(Space::shared, address, 16, 16, false);
      std::memcpy(&matrices[static_cast<size_t>(matrix)][static_cast<size_t>(row)], from, 16);
    }
  for (size_t lane = 0; lane < kLanes; ++lane)
    for (int matrix = 0; matrix < count; ++matrix) {
      const auto& m = matrices[static_cast<size_t>(matrix)];
      const size_t row = lane / 4, pair = 2 * (lane % 4);
      const uint32_t low = transposes ? m[pair][row] : m[row][pair];
      const uint32_t high = transposes ? m[pair + 1][row] : m[row][pair + 1];
      slot(*lanes[lane], i, matrix) = high << 16 | low;
    }
}

bool decode_product(Words words, Instruction& made) {
  made.meeting = Meeting::mma;
  if (!has(words, "row") || !has(words, "col")) return false;
  const auto set = [&](int kind, int depth, int operands) {
    made.variant = kind | depth << 3;
    made.results = 4;
    return made.operands == operands;
  };
  if (has(words, "m16n8k16") && has(words, "bf16")) return set(pairs_bf16, 16, 14);
  if (has(words, "m16n8k16") && words.back() == "f32") return set(pairs_f16, 16, 14);
  if (has(words, "m16n8k8") && has(words, "bf16")) return set(pairs_bf16, 8, 11);
  if (has(words, "m16n8k8") && has(words, "tf32")) return set(tf32, 8, 14);
  if (has(words, "m16n8k32") && has(words, "s8")) return set(bytes, 32, 14);
  // ".f32.A.B.f32", the last four words.
  const auto is_fp8 = [](std::string_view word) { return word == "e4m3" || word == "e5m2"; };
  const std::string_view a = words[words.size() - 3], b = words[words.size() - 2];
  if (has(words, "m16n8k32") && is_fp8(a) && is_fp8(b) && words.back() == "f32" &&
      words[words.size() - 4] == "f32")
    return set(fp8 + (a == "e5m2" ? kAIsE5m2 : 0) + (b == "e5m2" ? kBIsE5m2 : 0), 32, 14);
  return false;
}

}  // namespace

void meet(std::span<Lane* const> lanes, const Instruction& instruction) {
  const bool needs_all = instruction.meeting == Meeting::mma ||
                         instruction.meeting == Meeting::load_matrix ||
                         instruction.meeting == Meeting::warpgroup_product;
  if (needs_all && std::ranges::find(lanes, nullptr) != lanes.end())
    (*std::ranges::find_if(lanes, [](const Lane* lane) {
      return lane != nullptr;
    }))->fail("the whole warp has to make it");
  switch (instruction.meeting) {
    case Meeting::shuffle: return shuffle(lanes, instruction);
    case Meeting::vote: return vote(lanes, instruction);
    case Meeting::mma: return product(lanes, instruction);
    case Meeting::load_matrix: return load_matrices(lanes, instruction);
    case Meeting::warpgroup_product: return warpgroup_product(lanes, instruction);
    case Meeting::cluster_arrival:
      for (Lane* const lane : lanes)
        if (lane != nullptr) lane->arrive_at_cluster();
      return;
    default: return;
  }
}

bool decode_meeting(Words words, Instruction& made) {
  const std::string_view first = words[0];
  if (first == "bar" || first == "barrier") {
    if (has(words, "warp")) return made.meeting = Meeting::warp_barrier, true;
    made.meeting = Meeting::block_barrier;
    return has(words, "sync") && !has(words, "red");
  }
  if (first == "shfl" && has(words, "sync")) {
    made.meeting = Meeting::shuffle;
    made.variant = has(words, "idx")    ? index
                   : has(words, "up")   ? up
                   : has(words, "down") ? down
                                        : butterfly;
    if (made.operands == 6) made.variant |= kTellsWhether;
    return true;
  }
  if (first == "vote" && has(words, "sync")) {
    made.meeting = Meeting::vote;
    made.variant = has(words, "ballot") ? ballot
                   : has(words, "all")  ? all
                   : has(words, "any")  ? any
                                        : uniform;
    return true;
  }
  if (first == "mma") return decode_product(words, made);
  if (first == "ldmatrix") {
    made.meeting = Meeting::load_matrix;
    made.elements = has(words, "x4") ? 4 : has(words, "x2") ? 2 : 1;
    made.variant = has(words, "trans") ? 1 : 0;
    return has(words, "b16") && made.operands == made.elements + 1;
  }
  return false;
}

bool decode(Words words, Instruction& made) {
  if (words[0] == "bra") return true;
  if (words[0] == "ret" || words[0] == "exit") {
    made.target = -2;
    return true;
  }
  const Instruction before = made;
  for (const auto part : {decode_cluster, decode_meeting, decode_warpgroup, decode_tensor_copy,
                          decode_carry, decode_memory, decode_conversion, decode_bits}) {
    made = before;
    if (part(words, made)) return true;
  }
  const std::optional<Type> type = type_of(words.back());
  if (!type) return false;
  for (const auto part : {decode_comparison, decode_logic, decode_arithmetic}) {
    made = before;
    made.results = 1;
    if (part(words, *type, made)) return true;
  }
  return false;
}

}  // namespace fullbore::ptx
