// Reads and writes of memory, and conversions of addresses.
#include <algorithm>
#include <cstring>
#include <limits>

#include "tests/support/ptx/operands.h"

namespace fullbore::ptx {
namespace {

uint64_t& slot(Lane& lane, const Instruction& i, int operand) {
  return lane.slots()[i.slots[static_cast<size_t>(operand)]];
}

uint64_t element(const std::byte* from, const Instruction& i) {
  uint64_t bits = 0;
  std::memcpy(&bits, from, static_cast<size_t>(i.bytes));
  const int unused = 64 - 8 * i.bytes;
  if (i.sign_extends && unused > 0)
    bits = static_cast<uint64_t>(static_cast<int64_t>(bits << unused) >> unused);
  return bits;
}

// The address is the operand behind the elements.
void load(Lane& lane, const Instruction& i) {
  const uint64_t address = slot(lane, i, i.elements) + static_cast<uint64_t>(i.offset);
  const int64_t bytes = int64_t{i.bytes} * i.elements;
  const std::byte* from = lane.reach(i.space, address, bytes, bytes, false);
  for (int each = 0; each < i.elements; ++each, from += i.bytes)
    slot(lane, i, each) = element(from, i);
}
void store(Lane& lane, const Instruction& i) {
  const uint64_t address = slot(lane, i, 0) + static_cast<uint64_t>(i.offset);
  const int64_t bytes = int64_t{i.bytes} * i.elements;
  std::byte* to = lane.reach(i.space, address, bytes, bytes, true);
  for (int each = 0; each < i.elements; ++each, to += i.bytes)
    std::memcpy(to, &slot(lane, i, 1 + each), static_cast<size_t>(i.bytes));
}

uint64_t window_of(Space space) {
  return space == Space::shared      ? kSharedWindow
         : space == Space::local     ? kLocalWindow
         : space == Space::parameter ? kParameterWindow
                                     : 0;
}
void to_generic(Lane& lane, const Instruction& i) {
  slot(lane, i, 0) = slot(lane, i, 1) + window_of(i.space);
}
void from_generic(Lane& lane, const Instruction& i) {
  slot(lane, i, 0) = slot(lane, i, 1) - window_of(i.space);
}

enum Atomic : int { add, exchange, least, most, bit_and, bit_or, bit_xor, compare_and_swap };
template <class T>
void atomic(Lane& lane, const Instruction& i) {
  const int address = i.results;  // red has no result
  std::byte* const at =
      lane.reach(i.space, slot(lane, i, address) + static_cast<uint64_t>(i.offset), sizeof(T),
                 sizeof(T), true, true);
  T old, operand, other{};
  std::memcpy(&old, at, sizeof(T));
  std::memcpy(&operand, &slot(lane, i, address + 1), sizeof(T));
  if (i.variant == compare_and_swap) std::memcpy(&other, &slot(lane, i, address + 2), sizeof(T));
  T next = old;
  switch (i.variant) {
    case add:
      next = static_cast<T>(static_cast<uint64_t>(old) + static_cast<uint64_t>(operand));
      break;
    case exchange: next = operand; break;
    case least: next = std::min(old, operand); break;
    case most: next = std::max(old, operand); break;
    case bit_and: next = old & operand; break;
    case bit_or: next = old | operand; break;
    case bit_xor: next = old ^ operand; break;
    default: next = old == operand ? other : old;
  }
  std::memcpy(at, &next, sizeof(T));
  if (i.results == 0) return;
  uint64_t bits = 0;
  std::memcpy(&bits, &old, sizeof(T));
  slot(lane, i, 0) = bits;
}

// cp.async.cg.shared.global [to], [from], 16 {, so many of them}: the rest are zeros.
void copy_async(Lane& lane, const Instruction& i) {
  const uint64_t to = slot(lane, i, 0) + static_cast<uint64_t>(i.offset);
  const uint64_t from = slot(lane, i, 1) + static_cast<uint64_t>(i.second_offset);
  const auto bytes = static_cast<int64_t>(slot(lane, i, 2));
  if (bytes != 4 && bytes != 8 && bytes != 16) lane.fail("cp.async of neither 4, 8 nor 16 bytes");
  const int64_t read =
      i.operands > 3 ? static_cast<int64_t>(slot(lane, i, 3) & 0xffffffffU) : bytes;
  if (read > bytes) lane.fail("cp.async reads more than it writes");
  lane.copy_later(to, from, bytes, read);
}
void commit(Lane& lane, const Instruction&) { lane.commit_copies(); }
void wait_groups(Lane& lane, const Instruction& i) {
  lane.wait_for_copies(static_cast<int64_t>(slot(lane, i, 0)));
}
void wait_all(Lane& lane, const Instruction&) {
  lane.commit_copies();
  lane.wait_for_copies(0);
}
void nothing(Lane&, const Instruction&) {}
void show(Lane& lane, const Instruction&) { lane.show_to_others(false); }

Space space_of(Words words) {
  for (const std::string_view word : words) {
    if (word == "global" || word == "const") return Space::global;
    if (word.starts_with("shared")) return Space::shared;
    if (word == "local") return Space::local;
    if (word == "param") return Space::parameter;
  }
  return Space::generic;
}

bool decode_atomic(Words words, const Type& type, Instruction& made) {
  static constexpr std::pair<std::string_view, int> kNames[] = {
      {"add", add},     {"exch", exchange}, {"min", least},   {"max", most},
      {"and", bit_and}, {"or", bit_or},     {"xor", bit_xor}, {"cas", compare_and_swap}};
  made.variant = -1;
  for (const auto& [name, number] : kNames)
    if (has(words, name)) made.variant = number;
  // Sums of reals depend on the order of the threads: no kernel of ours has them.
  if (made.variant < 0 || type.kind > Type::Kind::is_unsigned) return false;
  made.results = words[0] == "atom" ? 1 : 0;
  const bool is_signed = type.kind == Type::Kind::is_signed;
  if (type.bits == 32) made.execute = is_signed ? atomic<int32_t> : atomic<uint32_t>;
  if (type.bits == 64) made.execute = is_signed ? atomic<int64_t> : atomic<uint64_t>;
  return made.execute != nullptr;
}

bool decode_copy(Words words, Instruction& made) {
  if (words.size() < 3 || words[1] != "async") return false;
  if (words[2] == "commit_group") return made.execute = commit, true;
  if (words[2] == "wait_group") return made.execute = wait_groups, true;
  if (words[2] == "wait_all") return made.execute = wait_all, true;
  return (words[2] == "cg" || words[2] == "ca") && (made.execute = copy_async, true);
}

}  // namespace

bool decode_memory(Words words, Instruction& made) {
  const std::string_view word = words[0];
  if (word == "cp") return decode_copy(words, made);
  made.space = space_of(words);
  if (word == "fence" && has(words, "proxy")) {
    made.execute = show;
    return words.size() >= 3 && words[2] == "async";
  }
  // All that a fence orders is ordered here by barriers alone: who relies on a fence has a race.
  if (word == "membar" || word == "fence" || word == "prefetch" || word == "prefetchu")
    return made.execute = nothing, true;
  if (word == "cvta") return made.execute = has(words, "to") ? from_generic : to_generic, true;
  const std::optional<Type> type = type_of(words.back());
  if (!type) return false;
  if (word == "atom" || word == "red") return decode_atomic(words, *type, made);
  if (word != "ld" && word != "st" && word != "ldu") return false;
  made.elements = has(words, "v2") ? 2 : has(words, "v4") ? 4 : 1;
  made.bytes = type->bits / 8;
  made.sign_extends = type->kind == Type::Kind::is_signed;
  if (made.bytes > 8 || made.operands != made.elements + 1) return false;
  made.results = word == "st" ? 0 : made.elements;
  made.execute = word == "st" ? store : load;
  return true;
}

}  // namespace fullbore::ptx
