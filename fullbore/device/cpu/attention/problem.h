#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

#include "fullbore/device/cpu/attention/tile_unit.h"
#include "fullbore/device/cpu/gemm/gemm_unit.h"
#include "fullbore/device/cpu/kernel.h"
#include "fullbore/device/cpu/kernels/elements.h"
#include "fullbore/ops/attention.h"
#include "fullbore/ops/packed_attention.h"

namespace fullbore::cpu {

/// Keys of a tile: as many as keep its scores, and the keys and values themselves, in the first cache
/// beside 64 queries.
inline constexpr int64_t kTileKeys = 64;

/// Where the rows of a tensor lie that are numbered (batch * heads + head) * positions + position, in
/// elements. Rows of one head are `row` apart.
struct RowLayout {
  int64_t heads = 1, positions = 1;
  int64_t first = 0, batch = 0, head = 0, row = 0;

  /// Of a tensor [B, heads, positions, width].
  static RowLayout of_heads(int64_t heads, int64_t positions, int64_t width) {
    return {heads, positions, 0, heads * positions * width, positions * width, width};
  }
  /// Of `heads` from the head `first` on, of a tensor [B, positions, all, width].
  static RowLayout of_positions(int64_t heads, int64_t positions, int64_t width, int64_t first,
                                int64_t all) {
    return {heads, positions, first * width, positions * all * width, width, all * width};
  }
  int64_t element(int64_t index) const {
    if (positions == 0) return first;  // no rows: it is not read
    const int64_t head_index = index / positions;
    return first + head_index / heads * batch + head_index % heads * head + index % positions * row;
  }
};

/// Which of a kernel's buffers are what. Of the gradient also dy and the rows' statistics; its results
/// are counted from the first output on.
struct AttentionBuffers {
  size_t q = 0, k = 1, v = 2;
  size_t dy = 3, log_sum_exp = 4, delta = 5;
  size_t dq = 0, dk = 1, dv = 2;
  size_t gradients = 3;
};

/// One node of attention or its gradient, packed or not: extents, strides, and where its operands are.
struct AttentionProblem {
  AttentionShape shape;
  AttentionBuffers at;
  RowLayout q, k, v, y, delta;  ///< gradients lie like what they are of
  bool packed = false;
  DType dtype = DType::f32;
  DType mask_dtype = DType::boolean;
  int64_t mask_batch = 0, mask_head = 0, mask_query = 0;  ///< strides, 0 where it is repeated
  int64_t site = 0;
  bool row_invariant = false;  ///< Target has it
  bool has_iteration = false;

  /// `operands`: how many the op always has.
  AttentionProblem(const KernelRequest& request, size_t operands);

  /// Operands of the node: the index of its first output among a kernel's buffers.
  size_t inputs() const {
    return shape.source + (shape.dropout > 0 ? 2 : 0) + (has_iteration ? 1 : 0);
  }
  /// Pairs of a batch and heads that share keys.
  int64_t key_sets() const { return shape.batch * shape.groups; }
  /// Rows of q before those of a key set.
  int64_t first_row(int64_t key_set) const { return key_set * shape.rows(); }
  /// The kept weights' factor 1 / (1 - probability).
  float kept() const { return static_cast<float>(1 / (1 - shape.dropout)); }
  /// The source's operands as draws of the element 0; the kept weights become `kept`.
  TileDraws draws(const void* const* buffers, float kept) const;
  /// "bf16 6 x [256,64] causal packed"
  std::string text() const;
};

/// Rows of one key set that are treated together: queries of one head, or where those are few, of
/// several.
struct QueryBlock {
  int64_t first = 0;  ///< row among those of the key set
  int64_t count = 0;

  int64_t groups() const { return divide_up(count, kGroupQueries); }
};

/// 0, count - 1, 1, count - 2, ...: a causal mask leaves the first blocks least to do, so that
/// neighbours in this order have as much together as any others.
constexpr int64_t from_both_ends(int64_t index, int64_t count) {
  return index % 2 == 0 ? index / 2 : count - 1 - index / 2;
}

/// The blocks of a key set, those of one head from both ends.
class QueryBlocks {
 public:
  explicit QueryBlocks(const AttentionProblem& problem);
  int64_t count() const { return count_; }
  int64_t per_head() const { return per_head_; }  ///< 0 where a block has several heads
  int64_t size() const { return size_; }
  QueryBlock operator[](int64_t index) const;

 private:
  int64_t rows_, queries_;
  int64_t size_ = 0;  ///< of a block
  int64_t per_head_ = 0;
  int64_t count_ = 0;
};

/// Neighbouring groups of a block that see the same keys of a tile, and those keys.
struct TileRun {
  int64_t group = 0, end = 0;          ///< groups
  int64_t first_key = 0, end_key = 0;  ///< counted from the tile's first
  bool cut = false;                    ///< do some of the queries see fewer, by causality?
  bool biased = false;                 ///< or by the mask, or does it add to scores?

  int64_t query() const { return group * kGroupQueries; }
  int64_t queries() const { return (end - group) * kGroupQueries; }
  /// Of a block of `count` queries.
  int64_t queries_of(int64_t count) const { return std::min(count, end * kGroupQueries) - query(); }
  int64_t keys() const { return end_key - first_key; }
  /// Of what lies like scores.
  int64_t offset() const { return first_key * kTileQueries + query(); }
};

/// Keys of a tile that the groups of a block see: `seen` of each, from `first_seen` on. By causality alone later groups see
/// no fewer than earlier ones.
struct TileView {
  using ByGroup = std::array<int64_t, kTileQueries / kGroupQueries>;

  int64_t first_key = 0;
  int64_t keys = 0;
  int64_t groups = 0;
  ByGroup first_seen = {};
  ByGroup seen = {};  ///< up to this one, by one of the group, rounded up
  std::array<bool, kTileQueries / kGroupQueries> cut = {}, biased = {};
  std::array<float, kTileQueries> seen_by_query = {};
  bool masked = false;  ///< is `seen` by a mask too?

  bool empty() const {
    for (size_t group = 0; group < static_cast<size_t>(groups); ++group)
      if (seen[group] > first_seen[group]) return false;
    return true;
  }
  bool any_cut() const { return std::ranges::find(cut, true) != cut.end(); }
  bool any_biased() const { return std::ranges::find(biased, true) != biased.end(); }
  /// visit(const TileRun&) for each run of groups that see equal keys, and some.
  template <class Visit>
  void for_each_run(const Visit& visit) const {
    for (int64_t group = 0, end = 0; group < groups; group = end) {
      const auto at = static_cast<size_t>(group);
      for (end = group + 1; end < groups && same(at, static_cast<size_t>(end));) ++end;
      if (seen[at] > first_seen[at])
        visit(TileRun{group, end, first_seen[at], seen[at], cut[at], biased[at]});
    }
  }
  /// visit(const TileRun&) for parts of the tile that together are what for_each_run visits. Without a mask a run of keys
  /// with all groups that see them, so that there are as few as can be.
  template <class Visit>
  void for_each_part(const Visit& visit) const {
    if (masked) return for_each_run(visit);
    int64_t key = 0;
    for (int64_t group = 0; group < groups; ++group) {
      const int64_t end = seen[static_cast<size_t>(group)];
      if (end > key) visit(TileRun{group, groups, key, end});
      key = std::max(key, end);
    }
  }

 private:
  bool same(size_t a, size_t b) const {
    return first_seen[a] == first_seen[b] && seen[a] == seen[b] && cut[a] == cut[b] &&
           biased[a] == biased[b];
  }
};

TileView view_tile(const AttentionShape& shape, const QueryBlock& block, int64_t first_key,
                   int64_t end_of_keys);

}  // namespace fullbore::cpu
