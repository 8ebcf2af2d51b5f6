#include "fullbore/device/cpu/gemm/panel_tiling.h"

#include <algorithm>

namespace fullbore::cpu {
namespace {

// Depth of one pass over registers; a panel of it (64 columns of f32) takes 192 KiB.
constexpr int64_t kDepth = 768;
constexpr int64_t kPackedDepth = 4096;
// Where rows abound, are copied, or are read again, wider tiles: a's rows are read and neighbouring elements of the
// result written fewer times, as long as b's columns stay in the second cache.
constexpr int64_t kManyRowTiles = 32;
constexpr int64_t kPanelElements = 128 << 10;
// Columns of other tiles, however wide a panel is.
constexpr int64_t kTileColumns = 128;
constexpr int64_t kMostColumns = 768;
// Fewest tiles into which a product is cut, if it is large enough and several workers share it.
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

// Panels per tile, at most `most`: as many as leave no tile much narrower than the others, for workers
// share tiles by their number.
int64_t level_panels(int64_t panels, int64_t most) {
  most = std::min(most, panels);
  int64_t best = 1;
  int64_t least_covered = 2 * panels;
  for (int64_t size = most; 2 * size >= most; --size) {
    const int64_t covered = divide_up(panels, size) * size;
    if (covered >= least_covered) continue;
    least_covered = covered;
    best = size;
  }
  return best;
}

// Tiles of about `height` rows and at most `panels` panels. Of a few tiles there are an even number,
// which two or four workers share evenly.
void cut(const PanelWork& work, int64_t height, int64_t panels, PanelTiling& tiling) {
  const Contraction& c = work.contraction;
  const int64_t all = std::max<int64_t>(1, divide_up(c.n, work.panel));
  tiling.columns = {c.n, level_panels(all, panels) * work.panel};
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

PanelTiling panel_tiling(const PanelWork& work) {
  const Contraction& c = work.contraction;
  PanelTiling tiling;
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
  int64_t height = kPanelTileRows;
  int64_t panels = divide_up(kTileColumns, work.panel);
  if (work.copied_columns) {
    height = kTransposedTileRows;
    panels = divide_up(kTransposedColumns, work.panel);
  } else if (!work.direct && work.depth > tiling.packed_depth) {
    // A narrow result of many passes over b is summed tile by tile, and b copied for each.
    height = 4 * kPanelTileRows;
  }
  if (c.m / height >= kManyRowTiles || work.wide || work.copied_rows)
    panels = std::clamp(kPanelElements / (std::max<int64_t>(1, work.depth) * work.panel), panels,
                        divide_up(kMostColumns, work.panel));
  const int64_t all_panels = std::max<int64_t>(1, divide_up(c.n, work.panel));
  if (work.tiles == TileShape::rows) {
    cut(work, kPanelTileRows, all_panels, tiling);
    tiling.columns.size = all_panels * work.panel;
    return tiling;
  }
  cut(work, height, panels, tiling);
  while (tiling.tiles(c.batch) < (c.workers > 1 ? kFewestTiles : 1)) {
    if (work.copied_columns && height > kPanelTileRows)
      height /= 2;
    else if (panels > 1)
      panels /= 2;
    else
      break;
    cut(work, height, panels, tiling);
  }
  return tiling;
}

}  // namespace fullbore::cpu
