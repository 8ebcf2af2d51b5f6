#pragma once
// Tiles of a product by warpgroups, y [batch, m, n] = c + a b, and how blocks share them out.
#include "fullbore/device/cuda/kernels/warpgroup.h"

constexpr int kThreads = 256;
constexpr int kChunk = 8;        // elements of 16 bytes
constexpr int kRowsAtOnce = 32;  // of 128 bytes, that the block brings
constexpr int kGroup = 16;       // rows of tiles that share columns of b in L2

struct Problem {
  int m, n, k, batches;
  bool is_wide;              ///< y is f32
  bool is_split;             ///< units are shared out, partial sums go to scratch
  int rows, columns, steps;  ///< tiles of a batch, units of a tile
  FB_DEVICE Problem(int m, int n, int k, int batches, bool is_wide, bool is_split, int tile_rows,
                    int tile_columns)
      : m(m),
        n(n),
        k(k),
        batches(batches),
        is_wide(is_wide),
        is_split(is_split),
        rows((m + tile_rows - 1) / tile_rows),
        columns((n + tile_columns - 1) / tile_columns),
        steps(most(1, (k + kStepDepth - 1) / kStepDepth)) {}
  FB_DEVICE int tiles() const { return rows * columns * batches; }
  FB_DEVICE long units() const { return static_cast<long>(tiles()) * steps; }
};

/// Where a tile lies: groups of rows, by columns in a group.
struct ProductPlace {
  int batch, row, column;
  FB_DEVICE ProductPlace(const Problem& of, int tile, int group = kGroup) {
    const int of_batch = of.rows * of.columns, in_batch = tile % of_batch;
    const int of_group = group * of.columns, in_group = in_batch % of_group;
    const int first = in_batch / of_group * group, height = least(group, of.rows - first);
    batch = tile / of_batch;
    row = first + in_group % height;
    column = in_group / height;
  }
};

/// Of units that are shared out: the first of a share, and the share that a unit belongs to.
FB_DEVICE long first_unit(const Problem& of, int share, int shares) {
  return of.units() * share / shares;
}
FB_DEVICE int share_of(const Problem& of, long unit, int shares) {
  return static_cast<int>(((unit + 1) * shares - 1) / of.units());
}

/// A block's units, or a pair's, one after another: of the walker `index` of `walkers`.
struct UnitWalk {
  int tile, step, stride;
  int left;
  FB_DEVICE UnitWalk(const Problem& of, int index, int walkers) {
    if (of.is_split) {
      const long first = first_unit(of, index, walkers);
      tile = static_cast<int>(first / of.steps);
      step = static_cast<int>(first % of.steps);
      stride = 1;
      left = static_cast<int>(first_unit(of, index + 1, walkers) - first);
    } else {
      tile = index;
      step = 0;
      stride = walkers;
      left = (of.tiles() - tile + stride - 1) / stride * of.steps;
    }
  }
  /// Units that are left of the tile.
  FB_DEVICE int of_tile(const Problem& of) const { return least(of.steps - step, left); }
  FB_DEVICE void advance(const Problem& of, int units) {
    left -= units;
    step += units;
    if (step < of.steps) return;
    step = 0;
    tile += stride;
  }
};
