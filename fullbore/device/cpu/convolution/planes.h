#pragma once
#include <cstdint>
#include <vector>

#include "fullbore/ops/convolution_geometry.h"

namespace fullbore::cpu {

/// A block of output rows of a convolution without strides over the last two axes, and the inputs that it reads: planes of
/// one channel [rows, width], zeros for padding, in which kernel element k lies offset(k) from what element 0 reads. So a
/// matmul reads its columns where they lie, K times over.
struct PlaneBlock {
  int64_t first = 0;  ///< output row
  int64_t count = 0;  ///< output rows
};

class Planes {
 public:
  /// Of three axes. `bytes`: of what one position of all channels takes; blocks keep their planes within a cache.
  Planes(const ConvGeometry& geometry, int64_t bytes);
  /// Are these the geometries that blocks serve: no strides, no zeros between inputs, the first axis idle?
  static bool serve(const ConvGeometry& geometry);

  int64_t blocks() const { return (rows_.output + block_rows_ - 1) / block_rows_; }
  PlaneBlock block(int64_t index) const;
  int64_t width() const { return width_; }
  /// Positions from the first to the last output of a block; those at columns from output width on are no outputs.
  int64_t positions(const PlaneBlock& plane_block) const {
    return (plane_block.count - 1) * width_ + columns_.output;
  }
  /// Elements of a channel's plane, of the largest block.
  int64_t elements() const { return (block_rows_ + reach_) * width_; }
  const std::vector<int64_t>& offsets() const { return offsets_; }

  /// The rows of x that lie in the planes of the block: plane row `row` is input row `input`, `count` of them.
  struct Rows {
    int64_t row, input, count;
  };
  Rows rows_of(const PlaneBlock& plane_block) const;
  /// The columns of x likewise.
  Rows columns() const;

 private:
  ConvAxis rows_, columns_;
  int64_t reach_;  ///< input rows beyond those of outputs
  int64_t width_;
  int64_t block_rows_;
  std::vector<int64_t> offsets_;
};

}  // namespace fullbore::cpu
