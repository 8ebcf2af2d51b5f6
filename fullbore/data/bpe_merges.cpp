#include "fullbore/data/bpe_merges.h"

#include <algorithm>
#include <bit>
#include <functional>

#include "fullbore/base/check.h"

namespace fullbore {
namespace {

/// Words up to this length are merged by looking through all pairs for the best: no list, no heap.
constexpr size_t kShort = 48;

uint64_t pair_key(int32_t left, int32_t right) {
  return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
}
uint64_t pair_hash(uint64_t pair) {
  pair *= 0x9E3779B97F4A7C15U;
  return pair ^ pair >> 32;
}

}  // namespace

BpeMerges::BpeMerges(std::span<const BpeMerge> merges, std::span<const int32_t> byte_tokens)
    : slots_(std::bit_ceil(2 * merges.size() + 2)),
      mask_(slots_.size() - 1),
      byte_tokens_(byte_tokens.begin(), byte_tokens.end()) {
  FB_CHECK(byte_tokens.size() == 256, "{} byte tokens", byte_tokens.size());
  for (const BpeMerge& merge : merges) {
    const uint64_t pair = pair_key(merge.left, merge.right);
    uint64_t at = pair_hash(pair) & mask_;
    while (slots_[at].rank != kNone) at = (at + 1) & mask_;
    slots_[at] = {pair, static_cast<int32_t>(merged_.size())};
    merged_.push_back(merge.merged);
  }
}

int32_t BpeMerges::rank(int32_t left, int32_t right) const {
  const uint64_t pair = pair_key(left, right);
  uint64_t at = pair_hash(pair) & mask_;
  while (slots_[at].pair != pair && slots_[at].rank != kNone) at = (at + 1) & mask_;
  return slots_[at].rank;
}

void BpeMerges::append_tokens(std::string_view word, std::vector<int32_t>& ids,
                              Scratch& scratch) const {
  scratch.tokens.clear();
  for (const char byte : word)
    scratch.tokens.push_back(byte_tokens_[static_cast<unsigned char>(byte)]);
  if (word.size() <= kShort)
    merge_short(scratch);
  else
    merge_long(scratch);
  ids.insert(ids.end(), scratch.tokens.begin(), scratch.tokens.end());
}

void BpeMerges::merge_short(Scratch& scratch) const {
  std::vector<int32_t>& tokens = scratch.tokens;
  std::vector<int32_t>& ranks = scratch.ranks;  // of the pair that begins at each token
  ranks.assign(tokens.size(), kNone);
  for (size_t i = 0; i + 1 < tokens.size(); ++i) ranks[i] = rank(tokens[i], tokens[i + 1]);
  for (;;) {
    const auto best = std::min_element(ranks.begin(), ranks.end());  // the first of several
    if (best == ranks.end() || *best == kNone) return;
    const auto at = static_cast<size_t>(best - ranks.begin());
    tokens[at] = merged_[static_cast<size_t>(*best)];
    tokens.erase(tokens.begin() + static_cast<std::ptrdiff_t>(at) + 1);
    ranks.erase(best);
    // What stood behind the erased token's rank is now the rank of the pair that begins at `at`.
    ranks[at] = at + 1 < tokens.size() ? rank(tokens[at], tokens[at + 1]) : kNone;
    if (at > 0) ranks[at - 1] = rank(tokens[at - 1], tokens[at]);
  }
}

/// The same with a heap of (rank, place) over a linked list of tokens. An entry of the heap whose
/// pair has changed since is passed over.
void BpeMerges::merge_long(Scratch& scratch) const {
  std::vector<int32_t>& tokens = scratch.tokens;
  const auto size = static_cast<uint32_t>(tokens.size());
  constexpr int32_t kGone = -1;
  std::vector<uint32_t>& next = scratch.next;
  std::vector<uint32_t>& previous = scratch.previous;
  next.resize(size);
  previous.resize(size);
  std::vector<uint64_t>& heap = scratch.heap;  // rank << 32 | place: the least is the next merge
  heap.clear();
  const auto later = std::greater<>();
  const auto offer = [&](uint32_t left, uint32_t right) {
    const int32_t found = rank(tokens[left], tokens[right]);
    if (found != kNone) heap.push_back(uint64_t{static_cast<uint32_t>(found)} << 32 | left);
    return found != kNone;
  };
  for (uint32_t i = 0; i < size; ++i) {
    next[i] = i + 1;
    previous[i] = i - 1;  // of the first: past the end, never followed
    if (i > 0) offer(i - 1, i);
  }
  std::make_heap(heap.begin(), heap.end(), later);
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), later);
    const auto at = static_cast<uint32_t>(heap.back());
    const auto wanted = static_cast<int32_t>(heap.back() >> 32);
    heap.pop_back();
    const uint32_t right = next[at];
    if (tokens[at] == kGone || right >= size || rank(tokens[at], tokens[right]) != wanted) continue;
    tokens[at] = merged_[static_cast<size_t>(wanted)];
    tokens[right] = kGone;
    next[at] = next[right];
    if (next[at] < size) previous[next[at]] = at;
    if (next[at] < size && offer(at, next[at])) std::push_heap(heap.begin(), heap.end(), later);
    if (at > 0 && offer(previous[at], at)) std::push_heap(heap.begin(), heap.end(), later);
  }
  tokens.erase(std::remove(tokens.begin(), tokens.end(), kGone), tokens.end());
}

}  // namespace fullbore
