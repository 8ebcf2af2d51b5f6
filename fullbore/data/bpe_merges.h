#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fullbore {

/// Two neighbouring tokens that become one.
struct BpeMerge {
  int32_t left = 0;
  int32_t right = 0;
  int32_t merged = 0;
  bool operator==(const BpeMerge&) const = default;
};

/// Byte-pair encoding of one word: its bytes as tokens, of which again and again the neighbours that
/// come first in the list of merges (the leftmost, where they occur twice) become one.
/// Source: Sennrich, Haddow, Birch 2016, arXiv:1508.07909, section 3.2.
class BpeMerges {
 public:
  /// `merges`: best first, no pair twice; `byte_tokens`: the token of each of the 256 bytes.
  BpeMerges(std::span<const BpeMerge> merges, std::span<const int32_t> byte_tokens);

  /// Room for the work on one word, kept between calls.
  struct Scratch {
    std::vector<int32_t> tokens;
    std::vector<int32_t> ranks;
    std::vector<uint32_t> next;
    std::vector<uint32_t> previous;
    std::vector<uint64_t> heap;
  };
  /// Appends the tokens of `word`. Time is O(n log n) in its length.
  void append_tokens(std::string_view word, std::vector<int32_t>& ids, Scratch& scratch) const;

  /// Place in the list of the merge of two tokens, or kNone.
  static constexpr int32_t kNone = INT32_MAX;
  int32_t rank(int32_t left, int32_t right) const;

 private:
  void merge_short(Scratch& scratch) const;
  void merge_long(Scratch& scratch) const;

  struct Slot {
    uint64_t pair = ~uint64_t{0};
    int32_t rank = kNone;
  };
  std::vector<Slot> slots_;  ///< open addressing, at most half full
  uint64_t mask_ = 0;
  std::vector<int32_t> merged_;  ///< by rank
  std::vector<int32_t> byte_tokens_;
};

}  // namespace fullbore
