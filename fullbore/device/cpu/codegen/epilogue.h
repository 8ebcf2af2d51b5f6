#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "fullbore/device/cpu/codegen/jit_piece.h"
#include "fullbore/device/cpu/gemm/panel_tiling.h"

namespace fullbore {

/// What a `fused` node does with its product (ir/fused_product.h), on one tile of the product at a time:
/// the kernel of the product calls it when a tile's sums are complete.
class Epilogue {
 public:
  Epilogue(const Node& node, jit::LoweredPiece lowered);

  /// As tiles are cut: its code.
  const jit::KernelIr& kernel() const { return piece_.kernel; }
  void set_slot(std::shared_ptr<const jit::Slot> slot) { slot_ = std::move(slot); }

  /// Which tiles it can take.
  cpu::TileShape tiles() const { return tiles_; }
  /// The product among the node's buffers, if it is one of its results; else -1.
  int product_buffer() const { return product_result_; }
  /// Says how the product is cut and how many elements lie between its rows when run() is called. To be
  /// called once, before run().
  void cut(const cpu::PanelTiling& tiling, int64_t stride);

  int64_t scratch_bytes() const { return scratch_bytes_; }  ///< of one worker
  double nanoseconds() const { return nanoseconds_; }
  /// As Kernel::may_alias(), for operands that the product does not read.
  bool may_alias(int input, int output) const;
  const std::string& text() const { return text_; }  ///< "mul,erf,add"

  /// The tile in the given row and column of tiles. `product`: where the first element of the whole
  /// product would be, were all of it there.
  void run(void* const* buffers, const void* product, int64_t row, int64_t column,
           void* scratch) const;

 private:
  void choose_tiles();
  bool reads_in_order() const;
  void split_lanes(int64_t rows, int64_t width);

  jit::LoweredPiece piece_;
  std::shared_ptr<const jit::Slot> slot_;
  int inputs_ = 0;
  int extra_buffer_ = 0;  ///< the product, behind the node's own
  int product_result_ = -1;
  int64_t rows_ = 0;       ///< of the product
  int64_t columns_ = 0;    ///< of the product
  int64_t rows_each_ = 1;  ///< of the kernel, per row of the product
  cpu::TileShape tiles_ = cpu::TileShape::all;
  jit::Partition partition_;
  std::vector<int64_t> parameters_;
  double nanoseconds_ = 0;
  int64_t scratch_bytes_ = 0;
  std::string text_;
};

}  // namespace fullbore
