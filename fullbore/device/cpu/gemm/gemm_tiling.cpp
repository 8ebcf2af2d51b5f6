#include "fullbore/device/cpu/gemm/gemm_tiling.h"

#include <algorithm>

namespace fullbore::cpu {
namespace {

// Depth of one pass over registers; a block of it (64 columns of f32) takes 192 KiB.
constexpr int64_t kDepth = 768;
constexpr int64_t kPackedDepth = 4096;
// Where rows abound, are copied, or are read again, wider tiles: a's rows are read and neighbouring elements of the
// result written fewer times, as long as b's columns stay in the second cache.
constexpr int64_t kManyRowTiles = 32;
constexpr int64_t kBlockElements = 128 << 10;
// Columns of other tiles, however wide a block is.
constexpr int64_t kTileColumns = 128;
constexpr int64_t kMostColumns = 768;
// Fewest tiles into which a result is cut, if it is large enough and several workers share it.
constexpr int64_t kFewestTiles = 8;
// A transposed a is copied, row of depth by row of depth: taller tiles read longer pieces of them, wider
// ones read them fewer times, and a lesser depth leaves room for both in the second cache.
constexpr int64_t kTransposedTileRows = 192;
constexpr int64_t kTransposedColumns = 256;
constexpr int64_t kTransposedDepth = 128;
// Register tiles have this many rows at most; a tile of rows is made of whole ones.
constexpr int64_t kRegisterRows = 6;
// Columns that a line of memory holds, of bf16.
constexpr int64_t kLineColumns = 32;

int64_t even_parts(int64_t count, int64_t most) {
  return divide_up(count, std::max<int64_t>(1, divide_up(count, most)));
}

// Blocks per tile, at most `most`: as many as leave no tile much narrower than the others, for workers
// share tiles by their number.
int64_t level_blocks(int64_t blocks, int64_t most) {
  most = std::min(most, blocks);
  int64_t best = 1;
  int64_t least_covered = 2 * blocks;
  for (int64_t size = most; 2 * size >= most; --size) {
    const int64_t covered = divide_up(blocks, size) * size;
    if (covered >= least_covered) continue;
    least_covered = covered;
    best = size;
  }
  return best;
}

// Tiles of about `height` rows and at most `blocks` blocks. Of a few tiles there are an even number,
// which two or four workers share evenly.
void cut(const GemmWork& work, int64_t height, int64_t blocks, GemmTiling& tiling) {
  const Contraction& c = work.contraction;
  const int64_t all = std::max<int64_t>(1, divide_up(c.n, work.block_columns));
  tiling.columns = {c.n, level_blocks(all, blocks) * work.block_columns};
  int64_t row_tiles = std::max<int64_t>(1, c.m / height);
  const bool uneven = c.batch * tiling.columns.parts() % 2 != 0 && row_tiles % 2 != 0;
  if (uneven && row_tiles > 1 && row_tiles < kManyRowTiles) --row_tiles;
  const int64_t rows = std::max<int64_t>(1, divide_up(c.m, row_tiles));
  tiling.rows = {c.m, round_up(rows, kRegisterRows)};
  // Rows that are copied as columns: whole lines of them, unless a worker would be left with less to do.
  const int64_t lines = round_up(rows, kLineColumns);
  const bool even = c.batch * tiling.columns.parts() % 2 == 0;
  if (work.copied_columns && (even || round_up(c.m, lines) - c.m <= lines / 8))
    tiling.rows.size = lines;
}

}  // namespace

GemmTiling gemm_tiling(const GemmWork& work) {
  const Contraction& c = work.contraction;
  GemmTiling tiling;
  tiling.depth =
      std::max<int64_t>(1, even_parts(work.depth, work.copied_columns ? kTransposedDepth : kDepth));
  tiling.packed_depth = tiling.depth * std::max<int64_t>(1, kPackedDepth / tiling.depth);
  // Tiles that are summed in place take b's copies pass by pass, while they are in the second cache.
  if (work.copied_columns && work.direct && !work.wide) tiling.packed_depth = tiling.depth;
  if (work.tiles == TileShape::all) {
    tiling.rows = {c.m, std::max<int64_t>(1, c.m)};
    tiling.columns = {c.n, std::max<int64_t>(1, c.n)};
    return tiling;
  }
  int64_t height = kGemmTileRows;
  int64_t blocks = divide_up(kTileColumns, work.block_columns);
  if (work.copied_columns) {
    height = kTransposedTileRows;
    blocks = divide_up(kTransposedColumns, work.block_columns);
  } else if (!work.direct && work.depth > tiling.packed_depth) {
    // A narrow result of many passes over b is summed tile by tile, and b copied for each.
    height = 4 * kGemmTileRows;
  }
  if (c.m / height >= kManyRowTiles || work.wide || work.copied_rows)
    blocks = std::clamp(kBlockElements / (std::max<int64_t>(1, work.depth) * work.block_columns),
                        blocks, divide_up(kMostColumns, work.block_columns));
  const int64_t all_blocks = std::max<int64_t>(1, divide_up(c.n, work.block_columns));
  if (work.tiles == TileShape::rows) {
    cut(work, kGemmTileRows, all_blocks, tiling);
    tiling.columns.size = all_blocks * work.block_columns;
    return tiling;
  }
  cut(work, height, blocks, tiling);
  while (tiling.tiles(c.batch) < (c.workers > 1 ? kFewestTiles : 1)) {
    if (work.copied_columns && height > kGemmTileRows)
      height /= 2;
    else if (blocks > 1)
      blocks /= 2;
    else
      break;
    cut(work, height, blocks, tiling);
  }
  return tiling;
}

}  // namespace fullbore::cpu
