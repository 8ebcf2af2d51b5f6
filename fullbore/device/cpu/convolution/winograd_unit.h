#pragma once
#include <cstdint>

#include "fullbore/base/processor.h"

namespace fullbore::cpu {

/// Elements of a tile of 4 x 4 inputs, and of products: element 4 i + j is in row i and column j.
inline constexpr int64_t kWinogradElements = 16;

/// Tiles in halves of vectors, those of a half side by side in one row of tiles: half h is the (h % across)-th of row
/// h / across. Vectors are two halves each; the last one's second half may be none.
struct WinogradTiles {
  int64_t halves = 0;
  int64_t across = 1;
};

/// to[e * product + t] = element e of B^T d B for the inputs d of tile t. Rows of tiles read from + r * row_step; their four
/// rows of inputs are `row` apart, tiles two columns, and columns 2 and 3 lie `shift` behind 0 and 1.
struct WinogradInputs {
  WinogradTiles tiles{};
  const float* from = nullptr;
  int64_t row_step = 0, row = 0, shift = 0;
  float* to = nullptr;
  int64_t product = 0;
};

/// The outputs A^T m A of the sums m of each tile, from[e * product + t]: two rows, `row` apart, of two columns for each
/// tile, from to + r * row_step on for row r of tiles.
struct WinogradOutputs {
  WinogradTiles tiles{};
  const float* from = nullptr;
  int64_t product = 0;
  float* to = nullptr;
  int64_t row_step = 0, row = 0;
};

/// to[e * product + o * inputs + c] = element e of G g G^T for the kernels g[3, 3] = from[o, 3, 3, c].
struct WinogradWeights {
  const float* from = nullptr;
  int64_t outputs = 0, inputs = 0;
  float* to = nullptr;  ///< up to a vector is written behind each row, before the next one is
  int64_t product = 0;
};

/// What is made of inputs, sums and weights of a winograd_convolution, for one vector unit.
struct WinogradUnit {
  int lanes = 1;  ///< tiles of a vector; in which order it has them is the unit's own
  void (*inputs)(const WinogradInputs& inputs) = nullptr;
  void (*outputs)(const WinogradOutputs& outputs) = nullptr;
  void (*weights)(const WinogradWeights& weights) = nullptr;
};

const WinogradUnit& winograd_unit(VectorUnit unit);

extern const WinogradUnit kWinogradAvx512;
extern const WinogradUnit kWinogradAvx2;
extern const WinogradUnit kWinogradBaseline;

}  // namespace fullbore::cpu
