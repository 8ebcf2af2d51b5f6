#pragma once
#include <cstdint>
#include <vector>

#include "fullbore/ops/convolution_geometry.h"

namespace fullbore::cpu {

/// A block of output rows of a convolution over the last two axes, and the inputs that it reads, zeros for padding. Inputs of
/// one channel lie in planes [rows, width], one for each element of the kernel along the first axis and, where there are
/// strides, for each remainder of places by them: a plane has the inputs that are a stride apart side by side. Kernel element
/// k then lies offset(k) from what element 0 reads, whatever the output. So a matmul reads its columns where they lie, K
/// times over.
struct PlaneBlock {
  int64_t first = 0;  ///< output row
  int64_t count = 0;  ///< output rows
};

class Planes {
 public:
  /// Of three axes. `bytes`: of what one position of all channels takes; blocks keep their planes within a cache.
  Planes(const ConvGeometry& geometry, int64_t bytes);
  /// Are these the geometries that blocks serve: no zeros between inputs?
  static bool serve(const ConvGeometry& geometry);
  /// Is a channel one plane: no strides either, the first axis idle?
  static bool serve_by_one(const ConvGeometry& geometry);

  int64_t blocks() const { return (rows_.output + block_rows_ - 1) / block_rows_; }
  PlaneBlock block(int64_t index) const;
  int64_t width() const { return width_; }
  /// Positions from the first to the last output of a block; those at columns from output width on are no outputs.
  int64_t positions(const PlaneBlock& plane_block) const {
    return (plane_block.count - 1) * width_ + columns_.output;
  }
  /// Elements of a plane, of the largest block; and of all of a channel's.
  int64_t plane_elements() const { return (block_rows_ + rows_.reach) * width_; }
  int64_t elements() const {
    return slices_ * static_cast<int64_t>(rows_.remainders.size() * columns_.remainders.size()) *
           plane_elements();
  }
  const std::vector<int64_t>& offsets() const { return offsets_; }
  /// Remainders by the strides that elements of the kernel have: planes lie by slice, by row's remainder, by column's.
  const std::vector<int64_t>& row_remainders() const { return rows_.remainders; }
  const std::vector<int64_t>& column_remainders() const { return columns_.remainders; }

  /// The rows of x that lie in the planes of the block, of a remainder: plane row `row` is input row `input`, the next one
  /// that which is a stride on, `count` of them.
  struct Rows {
    int64_t row, input, count;
  };
  Rows rows_of(const PlaneBlock& plane_block, int64_t remainder = 0) const;
  /// The columns of x likewise.
  Rows columns(int64_t remainder = 0) const;

 private:
  /// One axis of planes.
  struct Axis {
    explicit Axis(const ConvAxis& axis);
    Rows within(int64_t first, int64_t count, int64_t remainder) const;
    /// Of kernel element k: the place of its remainder among those there are, and how many outputs on it reads.
    int64_t plane(int64_t k) const;
    int64_t shift(int64_t k) const { return k * dilation / stride; }

    int64_t input, output, kernel, stride, before, dilation;
    int64_t reach = 0;  ///< inputs of a plane beyond those of outputs
    std::vector<int64_t> remainders;
  };
  Axis rows_, columns_;
  int64_t slices_;  ///< kernel elements along the first axis
  int64_t width_;
  int64_t block_rows_;
  std::vector<int64_t> offsets_;
};

}  // namespace fullbore::cpu
