#include "fullbore/device/cpu/attention/tiles.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace fullbore::cpu {

TileMasks::TileMasks(const AttentionProblem& problem, Scratch& scratch) {
  constexpr int64_t kTile = kTileKeys * kTileQueries;
  if (problem.shape.masked) {
    bias = scratch.take<float>(kTile);
    rows = scratch.take<float>(kTile);
  }
  if (problem.shape.dropout > 0) factors = scratch.take<float>(kTile);
}

namespace {

/// `vnni`: the processor has dot products of VNNI pairs.
const TileUnit& tile_loops(VectorUnit unit, [[maybe_unused]] bool vnni) {
#if defined(__x86_64__)
  if (vnni) return kTileAvx512Bf16;
#endif
  return tile_unit(unit);
}

}  // namespace

template <class E>
AttentionTiles<E>::AttentionTiles(const AttentionProblem& p, const MatmulUnits& units)
    : problem(p),
      f32_gemm(*gemm_unit<float>(units.vector_unit)),
      gemm(*gemm_unit<E>(units.vector_unit)),
      loops(tile_loops(units.vector_unit, kVnni)),
      vector_unit_(units.vector_unit) {}

template <class E>
std::string AttentionTiles<E>::text(const char* op) const {
  return fmt::format("{} {}{} {}", op, vector_unit_name(vector_unit_), kVnni ? " vnni" : "",
                     problem.text());
}

// In bf16 q times the scale would be rounded again.
template <class E>
float AttentionTiles<E>::remaining_scale() const {
  return kVnni ? static_cast<float>(problem.shape.scale) : 1;
}

template <class E>
int64_t AttentionTiles<E>::copied_rows(const RowLayout& layout, int64_t n) const {
  return used_as_they_lie(layout.row) ? 0 : n * depth();
}

template <class E>
int64_t AttentionTiles<E>::copied_stack(const RowLayout& layout, int64_t n) const {
  return kVnni ? divide_up(n, kStep) * width() : copied_rows(layout, n);
}

template <class E>
const E* AttentionTiles<E>::rows(const SourceMatrix& from, E* copy) const {
  if (used_as_they_lie(from.stride)) return static_cast<const E*>(from.data);
  gemm.copy_rows(from, copy, depth());
  return copy;
}

template <class E>
const E* AttentionTiles<E>::stacked(const SourceMatrix& from, E* copy) const {
  if (!kVnni) return rows(from, copy);
  gemm.copy(from, copy, width());
  return copy;
}

template <class E>
void AttentionTiles<E>::transpose(const SourceMatrix& from, E* to) const {
  gemm.copy_transposed(from, to, kTileQueries);
  const int64_t rest = round_up(from.rows, kGroupQueries) - from.rows;
  for (int64_t row = 0; rest > 0 && row < depth(); ++row)
    std::memset(to + row * kTileQueries + from.rows, 0, static_cast<size_t>(rest) * sizeof(E));
}

template <class E>
void AttentionTiles<E>::transpose_queries(const SourceMatrix& q, E* to) const {
  transpose(q, to);
  const auto scale = static_cast<float>(problem.shape.scale);
  if constexpr (!kVnni)
    for (int64_t row = 0; row < depth(); ++row)
      loops.scale_rows(to + row * kTileQueries, 1, round_up(q.rows, kGroupQueries), &scale);
}

template <class E>
void AttentionTiles<E>::round(const float* from, const RowLayout& layout, void* tensor,
                              int64_t first, int64_t count) const {
  char* to = static_cast<char*>(tensor) + layout.element(first) * dtype_bytes(problem.dtype);
  if (direct()) {
    f32_gemm.copy_rows({from, DType::f32, width(), count, width()}, reinterpret_cast<float*>(to),
                       layout.row);
    return;
  }
  const auto round = kVnni ? gemm.round : f32_gemm.round;  // VNNI pairs: by the processor itself
  round(from, width(), to, layout.row, problem.dtype, count, width());
}

template <class E>
void AttentionTiles<E>::multiply(GemmTile<E> tile, float* sums, int64_t stride) const {
  const int64_t columns = tile.columns;
  tile.c = sums;
  tile.c_row = stride;
  for (int64_t column = 0; column < columns; column += gemm.block_columns) {
    tile.columns = std::min<int64_t>(gemm.block_columns, columns - column);
    gemm.multiply(tile);
    tile.b += gemm.block_columns;
    tile.c += gemm.block_columns;
  }
}

template <class E>
void AttentionTiles<E>::scores(const TileView& view, const E* keys, const E* transposed,
                               float* scores) const {
  view.for_each_key_block([&](int64_t key, int64_t end, int64_t group) {
    const int64_t query = group * kGroupQueries;
    multiply({.rows = end - key,
              .columns = view.groups * kGroupQueries - query,
              .depth = depth(),
              .a = keys + key * depth(),
              .a_row = depth(),
              .b = transposed + query,
              .b_depth = kTileQueries},
             scores + key * kTileQueries + query, kTileQueries);
  });
}

template <class E>
void AttentionTiles<E>::add_by_query(const TileView& view, int64_t count, const E* weights,
                                     const E* values, float* sums) const {
  view.for_each_run([&](int64_t group, int64_t end, int64_t keys) {
    const int64_t query = group * kGroupQueries;
    multiply({.rows = std::min(count, end * kGroupQueries) - query,
              .columns = width(),
              .depth = divide_up(keys, kStep),
              .a = weights + query,
              .a_row = 1,
              .a_depth = kTileQueries,
              .b = values,
              .b_depth = width(),
              .accumulate = !problem.row_invariant,
              .goes_on = problem.row_invariant},
             sums + query * width(), width());
  });
}

template <class E>
void AttentionTiles<E>::add_by_key(const TileView& view, int64_t count, const E* weights,
                                   const E* values, float* sums) const {
  view.for_each_key_block([&](int64_t key, int64_t end, int64_t group) {
    const int64_t query = group * kGroupQueries;
    multiply({.rows = end - key,
              .columns = width(),
              .depth = divide_up(count - query, kStep),
              .a = weights + (key * kTileQueries + query) / kStep,
              .a_row = kTileQueries / kStep,
              .b = values + query / kStep * width(),
              .b_depth = width(),
              .accumulate = true},
             sums + key * width(), width());
  });
}

template <class E>
const char* AttentionTiles<E>::mask_at(const void* const* buffers, int64_t key_set, int64_t row,
                                       int64_t key) const {
  const AttentionShape& shape = problem.shape;
  const int64_t head = key_set % shape.groups * (shape.heads / shape.groups) + row / shape.queries;
  const int64_t element = key_set / shape.groups * problem.mask_batch + head * problem.mask_head +
                          row % shape.queries * problem.mask_query + key;
  return static_cast<const char*>(buffers[shape.mask]) + element * dtype_bytes(problem.mask_dtype);
}

template <class E>
bool AttentionTiles<E>::widen_mask(const char* mask, int64_t count, float* to) const {
  if (problem.mask_dtype == DType::boolean)
    return loops.truths(reinterpret_cast<const uint8_t*>(mask), count, to);
  f32_gemm.copy_rows({mask, problem.mask_dtype, count, 1, count}, to, count);
  return true;
}

template <class E>
bool AttentionTiles<E>::read_mask(const void* const* buffers, int64_t key_set,
                                  const QueryBlock& block, const TileView& view,
                                  const TileMasks& masks) const {
  bool visible = false;
  const int64_t last = block.first + block.count;
  for (int64_t row = block.first, end = 0; row < last; row = end) {
    end = std::min(last, (row / problem.shape.queries + 1) * problem.shape.queries);
    visible |= read_rows(mask_at(buffers, key_set, row, view.first_key), end - row, view, masks,
                         masks.bias + row - block.first);
  }
  const int64_t rest = view.groups * kGroupQueries - block.count;
  for (int64_t key = 0; rest > 0 && key < view.keys; ++key)
    std::fill_n(masks.bias + key * kTileQueries + block.count, rest, 0.0F);
  return visible;
}

// Queries of one head, each with a row of the mask or all with the same.
template <class E>
bool AttentionTiles<E>::read_rows(const char* mask, int64_t count, const TileView& view,
                                  const TileMasks& masks, float* bias) const {
  const int64_t stride = problem.mask_query * dtype_bytes(problem.mask_dtype);
  const bool repeated = stride == 0;
  bool visible = false;
  for (int64_t row = 0; row < (repeated ? 1 : count); ++row)
    visible |= widen_mask(mask + row * stride, view.keys, masks.rows + row * kTileKeys);
  if (!repeated)
    f32_gemm.copy_transposed({masks.rows, DType::f32, kTileKeys, count, view.keys}, bias,
                             kTileQueries);
  for (int64_t key = 0; repeated && key < view.keys; ++key)
    std::fill_n(bias + key * kTileQueries, count, masks.rows[key]);
  return visible;
}

template <class E>
void AttentionTiles<E>::mask(const TileView& view, const TileMasks& masks, float* scores,
                             float* largest) const {
  view.for_each_run([&](int64_t group, int64_t end, int64_t keys) {
    const int64_t query = group * kGroupQueries;
    const bool cut = view.cut[static_cast<size_t>(group)];
    loops.mask({scores + query, keys, end * kGroupQueries - query},
               {.scale = remaining_scale(),
                .bias = masks.bias ? masks.bias + query : nullptr,
                .seen = cut ? view.seen_by_query.data() + query : nullptr},
               largest + query);
  });
}

template <class E>
void AttentionTiles<E>::draw(const TileView& view, int64_t first_row, TileDraws draws,
                             float* factors) const {
  view.for_each_run([&](int64_t group, int64_t end, int64_t keys) {
    const int64_t query = group * kGroupQueries;
    draws.first = static_cast<uint32_t>((first_row + query) * problem.shape.draws_of_row() +
                                        view.first_key / kDrawElements);
    loops.draw({factors + query, keys, end * kGroupQueries - query}, draws);
  });
}

template class AttentionTiles<float>;
template class AttentionTiles<VnniPair>;

}  // namespace fullbore::cpu
