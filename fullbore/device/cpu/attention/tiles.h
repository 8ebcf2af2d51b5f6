#pragma once
#include <array>
#include <type_traits>

#include "fullbore/device/cpu/attention/problem.h"
#include "fullbore/device/cpu/kernels/scratch.h"

namespace fullbore::cpu {

/// What a mask of truths leaves of a tile: TileView has it of each group.
struct SeenTile {
  enum class State : uint8_t { unknown, hidden, seen };
  State state = State::unknown;
  std::array<uint8_t, kTileQueries / kGroupQueries> first_seen = {}, seen = {};
  std::array<bool, kTileQueries / kGroupQueries> biased = {};
};

/// What a tile's scores are masked and dropped with.
class TileMasks {
 public:
  TileMasks(const AttentionProblem& problem, Scratch& scratch);

  float* bias = nullptr;     ///< [kTileKeys, kTileQueries]
  float* rows = nullptr;     ///< the mask as it lies, widened: [kTileQueries, kTileKeys]
  float* factors = nullptr;  ///< of dropout: [kTileKeys, kTileQueries]

  /// Where heads have one mask, what it leaves of a tile of one of them is kept for the others: so much of it is read
  /// that it comes from memory. Null where they do not.
  SeenTile* known(int64_t key_set, const QueryBlock& block, int64_t first_key);

 private:
  int64_t groups_, queries_;
  bool by_batch_;
  int64_t block_queries_ = 0, tiles_ = 0, count_ = 0;
  int64_t batch_ = -1;
  SeenTile* seen_ = nullptr;
};

/// Rows of operands and results up to which they are used where they lie, however far apart. Of more, rows that are pages
/// apart would push one another out of the first cache; so few are multiplied in the time that a copy takes.
inline constexpr int64_t kFewRows = 32;

/// The matmuls and masks of tiles that attention and its gradient share. E is what matmuls
/// contract: float, or VnniPair, two neighbours at a time. Matrices come in two forms:
///   rows     [n, width / kStep]        to contract along a row: left operands, as they lie
///   stacked  [n / kStep, width]        to contract across rows: right operands
/// and transposed rows [width / kStep, kTileQueries] as right operands of the first matmuls.
template <class E>
class AttentionTiles {
 public:
  using Element = E;
  static constexpr bool kVnni = std::is_same_v<E, VnniPair>;
  static constexpr int64_t kStep = kDepthOf<E>;

  /// Rows of either form, `stride` elements of E apart.
  struct Rows {
    const E* data = nullptr;
    int64_t stride = 0;

    Rows from(int64_t row) const { return {data + row * stride, stride}; }
  };

  AttentionTiles(const AttentionProblem& problem, const MatmulUnits& units);

  const AttentionProblem problem;
  const GemmUnit<float>& f32_gemm;
  const GemmUnit<E>& gemm;
  const TileUnit& loops;
  /// Of kernels: "attention avx512 vnni bf16 ..."
  std::string text(const char* op) const;

  int64_t width() const { return problem.shape.width; }
  int64_t depth() const { return width() / kStep; }
  /// Are operands f32, as sums are?
  bool direct() const { return problem.dtype == DType::f32; }
  /// Are rows so few that those far apart keep their places in the first cache too? Then nothing is copied to be dense.
  bool few_rows() const {
    return problem.shape.rows() <= kFewRows && problem.shape.keys <= kFewRows;
  }
  /// What the scores of transposed_queries are still to be multiplied by.
  float remaining_scale() const;
  double flops_per_nanosecond() const { return gemm.flops_per_nanosecond; }
  /// Then an AmxTiles must live where anything is multiplied.
  bool uses_amx() const { return uses_amx_; }

  /// Rows [first, first + count) of one head of a tensor of the problem's dtype.
  SourceMatrix matrix(const RowLayout& layout, const void* tensor, int64_t first,
                      int64_t count) const {
    const int64_t bytes = layout.element(first) * dtype_bytes(problem.dtype);
    return {static_cast<const char*>(tensor) + bytes, problem.dtype, layout.row, count, width()};
  }
  /// Can sums be made where they go? f32, and rows without gaps or few.
  bool sums_in_place(const RowLayout& layout) const {
    return direct() && (is_dense(layout) || few_rows());
  }
  /// Rows of a tensor from one on to make sums in: there, or in scratch.
  StridedRows sums_in(const RowLayout& layout, void* tensor, int64_t row, float* scratch) const {
    if (!sums_in_place(layout)) return {scratch, width()};
    return {static_cast<float*>(tensor) + layout.element(row), layout.row};
  }
  void clear(const StridedRows& sums, int64_t count) const {
    for (int64_t row = 0; row < count; ++row) std::fill_n(sums.row(row), width(), 0.0F);
  }
  /// Elements of E to copy n rows to, 0 where they are used as they lie.
  int64_t copied_rows(const RowLayout& layout, int64_t n) const;
  int64_t copied_stack(const RowLayout& layout, int64_t n) const;
  Rows rows(const SourceMatrix& from, E* copy) const;
  Rows stacked(const SourceMatrix& from, E* copy) const;
  /// Queries beyond the rows up to a whole group are 0.
  void transpose(const SourceMatrix& from, E* to) const;
  /// The same, as far as possible times the scale of scores.
  void transpose_queries(const SourceMatrix& q, E* to) const;
  /// f32 rows [count, width], dense, rounded to the problem's dtype, to rows of a tensor.
  void round(const float* from, const RowLayout& layout, void* tensor, int64_t first,
             int64_t count) const;

  /// scores = keys [view.keys, depth] transposed
  void scores(const TileView& view, const Rows& keys, const E* transposed, float* scores) const;
  /// sums [count, width] += weights^T values: weights lie like scores, pairs of keys in one row. Of a row-invariant
  /// problem each sum goes on from key to key.
  void add_by_query(const TileView& view, int64_t count, const E* weights, const Rows& values,
                    const StridedRows& sums) const;
  /// sums [view.keys, width] += weights values: a row of weights per key, `values` per query.
  void add_by_key(const TileView& view, int64_t count, const E* weights, const Rows& values,
                  const StridedRows& sums) const;

  /// sums = or += a b, with as many columns as one likes.
  void multiply(GemmTile<E> tile, float* sums, int64_t stride) const;

  /// The mask of one row of a key set from a key on, and `count` elements of it as numbers to add;
  /// false: none of them is visible.
  const char* mask_at(const void* const* buffers, int64_t key_set, int64_t row, int64_t key) const;
  bool widen_mask(const char* mask, int64_t count, float* to) const;
  /// Takes from the view what the mask of a masked problem hides: of each group what is before and behind the keys that
  /// one of its queries sees. Fills the bias where it hides or adds anything else. False: nothing is left.
  bool read_mask(const void* const* buffers, int64_t key_set, const QueryBlock& block,
                 TileView& view, TileMasks& masks) const;
  /// Scales and masks the scores; largest as TileUnit::mask.
  void mask(const TileView& view, const TileMasks& masks, float* scores, float* largest) const;
  /// Fills the factors of dropout, `draws` being those of the problem.
  void draw(const TileView& view, int64_t first_row, TileDraws draws, float* factors) const;

 private:
  bool is_dense(const RowLayout& layout) const { return layout.row == width(); }
  bool used_as_they_lie(int64_t row) const {
    return (kVnni || direct()) && (row == width() || (!kVnni && few_rows()));
  }
  void see(const void* const* buffers, int64_t key_set, const QueryBlock& block,
           TileView& view) const;
  bool read_rows(const char* mask, int64_t count, const TileView& view, const TileMasks& masks,
                 float* bias) const;
  /// visit(first row, rows, mask of the first of them at the key) for the rows of each head in [first, end).
  template <class Visit>
  void for_each_head(const void* const* buffers, int64_t key_set, int64_t first, int64_t end,
                     int64_t key, const Visit& visit) const;

  VectorUnit vector_unit_;
  bool uses_amx_;
};

extern template class AttentionTiles<float>;
extern template class AttentionTiles<VnniPair>;

/// make(AttentionTiles<E>) with the best E that the units allow.
template <class Make>
auto with_tiles(const AttentionProblem& problem, const MatmulUnits& units, const Make& make) {
  // Sums of VNNI pairs depend on which keys are a pair.
  const bool vnni =
      units.vnni(problem.dtype) && problem.shape.width % 2 == 0 && !problem.row_invariant;
  return vnni ? make(AttentionTiles<VnniPair>(problem, units))
              : make(AttentionTiles<float>(problem, units));
}

}  // namespace fullbore::cpu
