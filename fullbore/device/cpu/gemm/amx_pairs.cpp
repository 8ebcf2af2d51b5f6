#include "fullbore/device/cpu/gemm/amx_pairs.h"

#include <algorithm>
#include <array>
#include <span>

#include "fullbore/device/cpu/gemm/amx_tiles.h"

namespace fullbore::cpu {
namespace {

constexpr int64_t kTile = 16;
constexpr int64_t kStepPairs = 16;  // of depth
constexpr auto kPairBytes = static_cast<int64_t>(sizeof(VnniPair));
// Of an operand whose rows lie across, as many are turned at once; 8 KiB.
constexpr int64_t kTurnedRows = 64;
constexpr int64_t kTurnedPairs = 32;

/// Whole tiles of a left operand whose pairs lie beside each other.
void multiply_whole(GemmTile<VnniPair> tile) {
  constexpr int64_t kMostSteps = 16;
  std::array<AmxStep, kMostSteps> steps;
  for (int64_t done = 0; done < tile.depth; done += kMostSteps * kStepPairs) {
    const int64_t count = std::min(kMostSteps, (tile.depth - done) / kStepPairs);
    for (int64_t i = 0; i < count; ++i)
      steps[static_cast<size_t>(i)] = {(done + i * kStepPairs) * kPairBytes,
                                       (done + i * kStepPairs) * tile.b_depth * kPairBytes};
    AmxTiles::multiply({.rows = tile.rows,
                        .columns = tile.columns,
                        .steps = std::span(steps).first(static_cast<size_t>(count)),
                        .a = reinterpret_cast<const char*>(tile.a),
                        .a_row = tile.a_row * kPairBytes,
                        .b = reinterpret_cast<const char*>(tile.b),
                        .b_row = tile.b_depth * kPairBytes,
                        .c = tile.c,
                        .c_row = tile.c_row,
                        .goes_on = tile.accumulate || done > 0});
  }
}

/// The same of one whose pairs of a row lie apart: they are moved as if they were numbers.
void multiply_turned(const GemmUnit<float>& words, const GemmTile<VnniPair>& tile) {
  alignas(64) std::array<float, kTurnedRows * kTurnedPairs> turned;
  for (int64_t row = 0; row < tile.rows; row += kTurnedRows)
    for (int64_t pair = 0; pair < tile.depth; pair += kTurnedPairs) {
      GemmTile<VnniPair> part = tile;
      part.rows = std::min(kTurnedRows, tile.rows - row);
      part.depth = std::min(kTurnedPairs, tile.depth - pair);
      words.copy_transposed({tile.a + row * tile.a_row + pair * tile.a_depth, DType::f32,
                             tile.a_depth, part.depth, part.rows},
                            turned.data(), kTurnedPairs);
      part.a = reinterpret_cast<const VnniPair*>(turned.data());
      part.a_row = kTurnedPairs;
      part.a_depth = 1;
      part.b += pair * tile.b_depth;
      part.c += row * tile.c_row;
      part.accumulate |= pair > 0;
      multiply_whole(part);
    }
}

}  // namespace

void multiply_pairs_by_tiles(const GemmUnit<VnniPair>& unit, const GemmUnit<float>& words,
                             const GemmTile<VnniPair>& tile) {
  GemmTile<VnniPair> whole = tile;
  whole.rows -= tile.rows % kTile;
  whole.columns -= tile.columns % kTile;
  whole.depth -= tile.depth % kStepPairs;
  const bool across = tile.a_depth != 1;
  if (whole.rows == 0 || whole.columns == 0 || whole.depth == 0 || (across && tile.a_row != 1))
    return multiply_columns(unit, tile);
  across ? multiply_turned(words, whole) : multiply_whole(whole);
  if (whole.depth < tile.depth) {
    GemmTile<VnniPair> behind = whole;
    behind.depth = tile.depth - whole.depth;
    behind.a += whole.depth * tile.a_depth;
    behind.b += whole.depth * tile.b_depth;
    behind.accumulate = true;
    multiply_columns(unit, behind);
  }
  if (whole.columns < tile.columns) {
    GemmTile<VnniPair> behind = tile;
    behind.rows = whole.rows;
    behind.columns = tile.columns - whole.columns;
    behind.b += whole.columns;
    behind.c += whole.columns;
    multiply_columns(unit, behind);
  }
  if (whole.rows < tile.rows) {
    GemmTile<VnniPair> behind = tile;
    behind.rows = tile.rows - whole.rows;
    behind.a += whole.rows * tile.a_row;
    behind.c += whole.rows * tile.c_row;
    multiply_columns(unit, behind);
  }
}

}  // namespace fullbore::cpu
