#include "fullbore/device/cpu/attention/tiles.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "fullbore/device/cpu/gemm/amx_pairs.h"

namespace fullbore::cpu {

TileMasks::TileMasks(const AttentionProblem& problem, Scratch& scratch)
    : groups_(problem.shape.groups),
      queries_(problem.shape.queries),
      by_batch_(problem.mask_batch != 0) {
  constexpr int64_t kTile = kTileKeys * kTileQueries;
  if (problem.shape.masked) {
    bias = scratch.take<float>(kTile);
    rows = scratch.take<float>(kTile);
  }
  if (problem.shape.dropout > 0) factors = scratch.take<float>(kTile);
  const QueryBlocks blocks(problem);
  if (!problem.shape.masked || problem.mask_dtype != DType::boolean || problem.mask_head != 0 ||
      problem.shape.heads == 1 || blocks.per_head() == 0)
    return;
  block_queries_ = blocks.size();
  tiles_ = divide_up(problem.shape.keys, kTileKeys);
  count_ = blocks.per_head() * tiles_;
  seen_ = scratch.take<SeenTile>(count_);
}

SeenTile* TileMasks::known(int64_t key_set, const QueryBlock& block, int64_t first_key) {
  if (seen_ == nullptr) return nullptr;
  const int64_t batch = by_batch_ ? key_set / groups_ : 0;
  if (batch != batch_) std::fill_n(seen_, count_, SeenTile());
  batch_ = batch;
  return seen_ + block.first % queries_ / block_queries_ * tiles_ + first_key / kTileKeys;
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
      vector_unit_(units.vector_unit),
      uses_amx_(kVnni && units.amx_bf16) {}

template <class E>
std::string AttentionTiles<E>::text(const char* op) const {
  return fmt::format("{} {}{} {}", op, vector_unit_name(vector_unit_),
                     uses_amx_ ? " amx"
                     : kVnni   ? " vnni"
                               : "",
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
auto AttentionTiles<E>::rows(const SourceMatrix& from, E* copy) const -> Rows {
  if (used_as_they_lie(from.stride)) return {static_cast<const E*>(from.data), from.stride / kStep};
  gemm.copy_rows(from, copy, depth());
  return {copy, depth()};
}

template <class E>
auto AttentionTiles<E>::stacked(const SourceMatrix& from, E* copy) const -> Rows {
  if (!kVnni) return rows(from, copy);
  gemm.copy(from, copy, width());
  return {copy, width()};
}

template <class E>
void AttentionTiles<E>::transpose(const SourceMatrix& from, E* to) const {
  // The last group whole, of which rows that there are follow: as many elements as the compiler knows.
  const int64_t whole = from.rows / kGroupQueries * kGroupQueries;
  for (int64_t row = 0; whole < from.rows && row < depth(); ++row)
    std::fill_n(to + row * kTileQueries + whole, kGroupQueries, E());
  gemm.copy_transposed(from, to, kTileQueries);
}

template <class E>
void AttentionTiles<E>::transpose_queries(const SourceMatrix& q, E* to) const {
  transpose(q, to);
  if constexpr (!kVnni)
    loops.scale({to, kTileQueries}, depth(), round_up(q.rows, kGroupQueries),
                static_cast<float>(problem.shape.scale));
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
  tile.c = sums;
  tile.c_row = stride;
  if constexpr (kVnni)
    if (uses_amx_) return multiply_pairs_by_tiles(gemm, f32_gemm, tile);
  multiply_columns(gemm, tile);
}

template <class E>
void AttentionTiles<E>::scores(const TileView& view, const Rows& keys, const E* transposed,
                               float* scores) const {
  view.for_each_part([&](const TileRun& run) {
    multiply({.rows = run.keys(),
              .columns = run.queries(),
              .depth = depth(),
              .a = keys.from(run.first_key).data,
              .a_row = keys.stride,
              .b = transposed + run.query(),
              .b_depth = kTileQueries},
             scores + run.offset(), kTileQueries);
  });
}

template <class E>
void AttentionTiles<E>::add_by_query(const TileView& view, int64_t count, const E* weights,
                                     const Rows& values, const StridedRows& sums) const {
  view.for_each_run([&](const TileRun& run) {
    multiply({.rows = run.queries_of(count),
              .columns = width(),
              .depth = divide_up(run.keys(), kStep),
              .a = weights + run.first_key / kStep * kTileQueries + run.query(),
              .a_row = 1,
              .a_depth = kTileQueries,
              .b = values.from(run.first_key / kStep).data,
              .b_depth = values.stride,
              .accumulate = !problem.row_invariant,
              .goes_on = problem.row_invariant},
             sums.row(run.query()), sums.stride);
  });
}

template <class E>
void AttentionTiles<E>::add_by_key(const TileView& view, int64_t count, const E* weights,
                                   const Rows& values, const StridedRows& sums) const {
  view.for_each_part([&](const TileRun& run) {
    multiply({.rows = run.keys(),
              .columns = width(),
              .depth = divide_up(run.queries_of(count), kStep),
              .a = weights + run.offset() / kStep,
              .a_row = kTileQueries / kStep,
              .b = values.from(run.query() / kStep).data,
              .b_depth = values.stride,
              .accumulate = true},
             sums.row(run.first_key), sums.stride);
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
template <class Visit>
void AttentionTiles<E>::for_each_head(const void* const* buffers, int64_t key_set, int64_t first,
                                      int64_t end, int64_t key, const Visit& visit) const {
  for (int64_t row = first, next = 0; row < end; row = next) {
    next = std::min(end, (row / problem.shape.queries + 1) * problem.shape.queries);
    visit(row, next - row, mask_at(buffers, key_set, row, key));
  }
}

namespace {

/// Which keys of a tile the queries of a group see: any of them, all of them. A byte for each key.
class SeenKeys {
 public:
  SeenKeys() { by_all_.fill(~uint64_t{0}); }
  void add(const char* truths, int64_t keys) {
    Words row = {};
    std::memcpy(row.data(), truths, static_cast<size_t>(keys));
    for (size_t i = 0; i < row.size(); ++i) {
      by_any_[i] |= row[i];
      by_all_[i] &= row[i];
    }
  }
  bool any(int64_t key) const { return bytes(by_any_)[key] != 0; }
  bool all(int64_t key) const { return bytes(by_all_)[key] != 0; }

 private:
  using Words = std::array<uint64_t, kTileKeys / 8>;
  static const char* bytes(const Words& words) {
    return reinterpret_cast<const char*>(words.data());
  }
  Words by_any_ = {}, by_all_;
};

/// The keys between the first and the last that one of a group sees, from a key on at which draws and pairs begin.
void narrow(const SeenKeys& seen, size_t group, TileView& view) {
  int64_t& first = view.first_seen[group];
  int64_t& end = view.seen[group];
  while (end > first && !seen.any(end - 1)) --end;
  while (first < end && !seen.any(first)) ++first;
  first -= first % kDrawElements;
  view.biased[group] = false;
  for (int64_t key = first; key < end && !view.biased[group]; ++key)
    view.biased[group] = !seen.all(key);
}

}  // namespace

// By truths.
template <class E>
void AttentionTiles<E>::see(const void* const* buffers, int64_t key_set, const QueryBlock& block,
                            TileView& view) const {
  std::array<SeenKeys, kTileQueries / kGroupQueries> seen;
  const auto visit = [&](int64_t row, int64_t rows, const char* mask) {
    for (int64_t i = 0; i < rows;) {
      const int64_t query = row - block.first + i;
      seen[static_cast<size_t>(query / kGroupQueries)].add(mask + i * problem.mask_query,
                                                           view.keys);
      // A row that all queries share counts once for each group.
      i += problem.mask_query == 0 ? kGroupQueries - query % kGroupQueries : 1;
    }
  };
  for_each_head(buffers, key_set, block.first, block.first + block.count, view.first_key, visit);
  for (size_t group = 0; group < static_cast<size_t>(view.groups); ++group)
    narrow(seen[group], group, view);
}

namespace {

/// What a mask has left of the view, for heads to come.
SeenTile seen_of(const TileView& view) {
  SeenTile seen{.state = view.empty() ? SeenTile::State::hidden : SeenTile::State::seen,
                .first_seen = {},
                .seen = {},
                .biased = view.biased};
  for (size_t group = 0; group < view.seen.size(); ++group) {
    seen.first_seen[group] = static_cast<uint8_t>(view.first_seen[group]);
    seen.seen[group] = static_cast<uint8_t>(view.seen[group]);
  }
  return seen;
}

void take(const SeenTile& seen, TileView& view) {
  view.biased = seen.biased;
  for (size_t group = 0; group < view.seen.size(); ++group) {
    view.first_seen[group] = seen.first_seen[group];
    view.seen[group] = seen.seen[group];
  }
}

}  // namespace

template <class E>
bool AttentionTiles<E>::read_mask(const void* const* buffers, int64_t key_set,
                                  const QueryBlock& block, TileView& view, TileMasks& masks) const {
  if (!problem.shape.masked) return true;
  view.masked = true;
  view.biased.fill(true);
  const bool truths = problem.mask_dtype == DType::boolean;
  if (truths) {
    SeenTile* const known = masks.known(key_set, block, view.first_key);
    if (known != nullptr && known->state != SeenTile::State::unknown) {
      take(*known, view);
    } else {
      see(buffers, key_set, block, view);
      if (known != nullptr) *known = seen_of(view);
    }
    if (view.empty()) return false;
  }
  bool visible = truths;
  view.for_each_run([&](const TileRun& run) {
    if (!run.biased) return;
    const int64_t first = block.first + run.query(), count = run.queries_of(block.count);
    for_each_head(buffers, key_set, first, first + count, view.first_key,
                  [&](int64_t row, int64_t rows, const char* mask) {
                    visible |= read_rows(mask, rows, view, masks, masks.bias + row - block.first);
                  });
    for (int64_t key = 0; count < run.queries() && key < view.keys; ++key)
      std::fill_n(masks.bias + key * kTileQueries + run.query() + count, run.queries() - count,
                  0.0F);
  });
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
  view.for_each_run([&](const TileRun& run) {
    const float* seen = view.seen_by_query.data() + run.query();
    std::array<float, kTileQueries> moved;  // counted from the run's first key
    if (run.cut && run.first_key > 0) {
      std::transform(seen, seen + run.queries(), moved.begin(),
                     [&](float keys) { return keys - static_cast<float>(run.first_key); });
      seen = moved.data();
    }
    loops.mask({scores + run.offset(), run.keys(), run.queries()},
               {.scale = remaining_scale(),
                .bias = run.biased ? masks.bias + run.offset() : nullptr,
                .seen = run.cut ? seen : nullptr},
               largest + run.query());
  });
}

template <class E>
void AttentionTiles<E>::draw(const TileView& view, int64_t first_row, TileDraws draws,
                             float* factors) const {
  view.for_each_run([&](const TileRun& run) {
    draws.first = static_cast<uint32_t>((first_row + run.query()) * problem.shape.draws_of_row() +
                                        (view.first_key + run.first_key) / kDrawElements);
    loops.draw({factors + run.offset(), run.keys(), run.queries()}, draws);
  });
}

template class AttentionTiles<float>;
template class AttentionTiles<VnniPair>;

}  // namespace fullbore::cpu
