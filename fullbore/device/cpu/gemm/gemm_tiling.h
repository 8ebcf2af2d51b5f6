#pragma once
#include "fullbore/device/cpu/gemm/contraction.h"
#include "fullbore/device/cpu/kernels/elements.h"

namespace fullbore::cpu {

/// Rows of a tile: enough to pay for the copy of a's rows, few enough that they stay in the second cache
/// beside the block of columns. Up to twice as many make one tile.
inline constexpr int64_t kGemmTileRows = 48;

/// Which tiles of a result what comes behind it can work on.
enum class TileShape : uint8_t {
  any,
  rows,  ///< of all columns
  all    ///< the whole result
};

/// What the cut of a result into tiles depends on: not the number of workers, for the bits of a result
/// must not either.
struct GemmWork {
  const Contraction& contraction;
  int64_t depth = 0;            ///< in operands, of one element or of two
  int64_t block_columns = 1;    ///< columns of the widest block
  bool copied_columns = false;  ///< is a copied, and transposed?
  bool copied_rows = false;     ///< or copied as it lies?
  bool direct = true;           ///< are sums made where the result goes?
  TileShape tiles = TileShape::any;
  bool wide = false;  ///< does something read the tiles row by row?
};

struct GemmTiling {
  Blocks rows;
  Blocks columns;     ///< whole blocks, but for the last
  int64_t depth = 1;  ///< of one pass over registers
  int64_t packed_depth =
      1;  ///< for which a worker keeps copies of b's columns; a multiple of depth

  int64_t tiles(int64_t batch) const { return batch * rows.parts() * columns.parts(); }
};

GemmTiling gemm_tiling(const GemmWork& work);

}  // namespace fullbore::cpu
