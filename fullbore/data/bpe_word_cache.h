#pragma once
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace fullbore {

/// Words met before and their tokens, so that most words of a text need no merging. Bounded: an old
/// word makes room for a new one. Of one thread at a time.
class BpeWordCache {
 public:
  BpeWordCache() : slots_(kSlots) {}

  /// Short words, nearly all, are found by their bytes as two numbers.
  static constexpr size_t kShortBytes = 15;
  static constexpr size_t kShortTokens = 4;
  struct Slot {
    uint64_t low = 0;   ///< bytes 0-7 of the word, zero-padded
    uint64_t high = 0;  ///< bytes 8-14, and the length in the top byte: 0 in an empty slot
    int32_t ids[kShortTokens] = {};  ///< unused ones are -1
  };
  static_assert(sizeof(Slot) == 32);

  /// A slot of a short word before its tokens are known. `readable`: bytes that may be read at `word`.
  static Slot pack(const char* word, size_t bytes, size_t readable) {
    Slot slot;
    if (readable >= 16) {
      std::memcpy(&slot.low, word, 8);
      std::memcpy(&slot.high, word + 8, 8);
      if (bytes < 8) {
        slot.low &= (uint64_t{1} << 8 * bytes) - 1;
        slot.high = 0;
      } else {
        slot.high &= (uint64_t{1} << 8 * (bytes - 8)) - 1;
      }
    } else {
      char padded[16] = {};
      std::memcpy(padded, word, bytes);
      std::memcpy(&slot.low, padded, 8);
      std::memcpy(&slot.high, padded + 8, 8);
    }
    slot.high |= uint64_t{bytes} << 56;
    return slot;
  }
  /// Where the word lives if it is known; else to be overwritten when its tokens are.
  Slot& place(const Slot& word) {
    const uint64_t mixed = (word.low ^ word.high * 0x9E3779B97F4A7C15U) * 0xD6E8FEB86659FD93U;
    return slots_[mixed >> (64 - kSlotBits)];
  }
  static bool same(const Slot& a, const Slot& b) { return a.low == b.low && a.high == b.high; }

  /// The others by their text: null if unknown.
  const std::vector<int32_t>* find(std::string_view word) const {
    const auto entry = words_.find(word);
    return entry == words_.end() ? nullptr : &entry->second;
  }
  void add(std::string_view word, const int32_t* ids, size_t count) {
    if (word.size() > kLongestBytes) return;
    if (words_.size() >= kMostWords) words_.clear();
    words_.emplace(word, std::vector<int32_t>(ids, ids + count));
  }

 private:
  static constexpr int kSlotBits = 15;  // 1 MiB of slots: what a core's cache holds
  static constexpr size_t kSlots = size_t{1} << kSlotBits;
  static constexpr size_t kMostWords = size_t{1} << 15;
  static constexpr size_t kLongestBytes = 128;

  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  std::vector<Slot> slots_;
  std::unordered_map<std::string, std::vector<int32_t>, Hash, std::equal_to<>> words_;
};

}  // namespace fullbore
