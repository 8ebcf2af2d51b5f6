#pragma once
#include <cstdint>

#include "fullbore/device/cpu/gemm/gemm_unit.h"

namespace fullbore::cpu {

/// Queries of a block: the columns of a tile of scores, which has a row per key. With queries in the
/// lanes of vectors, the largest score of each and the sum of its exponentials are made without any
/// sum across lanes, and the tile is a left operand of the next matmul as it lies.
inline constexpr int64_t kTileQueries = 64;
/// Queries that are treated alike where a mask cuts through a tile: a whole number of vectors.
inline constexpr int64_t kGroupQueries = 16;

/// Rows for some keys, columns for whole groups of queries, kTileQueries apart.
struct ScoreTile {
  float* scores = nullptr;
  int64_t keys = 0;
  int64_t queries = 0;
};

/// Rows of f32, `stride` elements apart.
struct StridedRows {
  float* data = nullptr;
  int64_t stride = 0;

  float* row(int64_t index) const { return data + index * stride; }
  StridedRows from(int64_t index) const { return {row(index), stride}; }
};

/// What the scores of a tile are before their exponentials are taken: score * scale + bias, -inf from
/// key seen[query] on.
struct TileMask {
  float scale = 1;
  const float* bias = nullptr;  ///< as the scores lie; null: none
  const float* seen = nullptr;  ///< per query, counted from the tile's first key; null: all
};

/// Draws for a tile, see ops/random.h: eight keys from `key` on share the one whose counter's words are
/// (first + query * stride + key / 8, words).
struct TileDraws {
  uint32_t first = 0;
  uint32_t stride = 0;
  uint32_t words[3] = {};
  uint32_t key[2] = {};
  uint32_t threshold = 0;  ///< drawn numbers of 16 bits below it drop a weight
  float kept = 1;          ///< what the others become
};

/// Where a tile's gradient goes: to f32, or if there are such, to VNNI pairs.
struct TileGradient {
  float* weights = nullptr;  ///< dropped; as the scores lie
  float* slopes = nullptr;   ///< cotangents of the dot_products q k^T; likewise
  /// In bf16: for each key a row of pairs of queries, and for each pair of keys a row of queries.
  VnniPair* weight_pairs = nullptr;
  VnniPair* slope_pairs = nullptr;
  VnniPair* slope_key_pairs = nullptr;
};

/// The loops over tiles for one vector unit. Exponentials are correct to 2 ulps.
struct TileUnit {
  /// The mask applied to the scores, and largest[query] = max(largest[query], its scores).
  void (*mask)(const ScoreTile& tile, const TileMask& mask, float* largest) = nullptr;
  /// For each query: shift = largest, or 0 where that is -inf; factor = exp(old shift - shift), by
  /// which sum is multiplied too. False if all factors are 1.
  bool (*rescale)(int64_t queries, const float* largest, float* shift, float* sum,
                  float* factor) = nullptr;
  /// scores = exp(scores - shift[query]), added to sum[query], then times `factors`, if not null, laid
  /// out like the scores. With `pairs` they go there instead, in bf16: for each pair of keys a row of
  /// queries; an odd last key is paired with 0.
  void (*exponentiate)(const ScoreTile& tile, const float* shift, const float* factors, float* sum,
                       VnniPair* pairs) = nullptr;
  /// log_sum_exp = shift + log(sum), inverse = kept / sum; 0 and 0 for a sum of 0.
  void (*finish)(int64_t queries, const float* shift, const float* sum, float kept,
                 float* log_sum_exp, float* inverse) = nullptr;
  /// With w = exp(scores - log_sum_exp[query]): weights = w factors, and slopes =
  /// w (dot_products * factors - delta[query]) * scale. `dot_products` lies like the scores; `to` may be both.
  void (*differentiate)(const ScoreTile& tile, const float* dot_products, const float* log_sum_exp,
                        const float* delta, const float* factors, float scale,
                        const TileGradient& to) = nullptr;
  /// kept or 0 for each element of the tile.
  void (*draw)(const ScoreTile& tile, const TileDraws& draws) = nullptr;
  /// to[i] = 0 where from[i] is true, else -inf; is any true?
  bool (*truths)(const uint8_t* from, int64_t count, float* to) = nullptr;
  /// x[row, columns] *= factor[row]
  void (*scale_rows)(const StridedRows& x, int64_t rows, int64_t columns,
                     const float* factor) = nullptr;
  /// x[row, columns] *= factor
  void (*scale)(const StridedRows& x, int64_t rows, int64_t columns, float factor) = nullptr;
};

/// The unit's loops; the processor must have it.
const TileUnit& tile_unit(VectorUnit unit);
/// The same for AVX-512 with conversions to bf16; the processor must have AVX512_BF16.
extern const TileUnit kTileAvx512Bf16;

extern const TileUnit kTileAvx512;
extern const TileUnit kTileAvx2;
extern const TileUnit kTileBaseline;

}  // namespace fullbore::cpu
