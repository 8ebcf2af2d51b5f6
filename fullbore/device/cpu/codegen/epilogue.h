#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "fullbore/device/cpu/codegen/jit_piece.h"
#include "fullbore/device/cpu/gemm/gemm_tiling.h"

namespace fullbore {

/// What a `fused` node does with its matmul (ir/fused_matmul.h), on one tile of the matmul at a time:
/// the kernel of the matmul calls it when a tile's sums are complete.
class Epilogue {
 public:
  Epilogue(const Node& node, jit::LoweredPiece lowered);

  /// As tiles are cut: its code.
  const jit::KernelIr& kernel() const { return piece_.kernel; }
  void set_slot(std::shared_ptr<const jit::Slot> slot) { slot_ = std::move(slot); }

  /// Which tiles it can take.
  cpu::TileShape tiles() const { return tiles_; }
  /// The matmul among the node's buffers, if it is one of its results; else -1.
  int matmul_buffer() const { return matmul_result_; }
  /// Says how the matmul is cut and how many elements lie between its rows when run() is called. To be
  /// called once, before run().
  void cut(const cpu::GemmTiling& tiling, int64_t stride);

  int64_t scratch_bytes() const { return scratch_bytes_; }  ///< of one worker
  double nanoseconds() const { return nanoseconds_; }
  /// As Kernel::may_alias(), for operands that the matmul does not read.
  bool may_alias(int input, int output) const;
  const std::string& text() const { return text_; }  ///< "mul,erf,add"

  /// The tile in the given row and column of tiles. `matmul`: where the first element of the whole
  /// matmul would be, were all of it there.
  void run(void* const* buffers, const void* matmul, int64_t row, int64_t column,
           void* scratch) const;

 private:
  void choose_tiles();
  bool reads_in_order() const;
  void split_lanes(int64_t rows, int64_t width);

  jit::LoweredPiece piece_;
  std::shared_ptr<const jit::Slot> slot_;
  int inputs_ = 0;
  int extra_buffer_ = 0;  ///< the matmul, behind the node's own
  int matmul_result_ = -1;
  int64_t rows_ = 0;       ///< of the matmul
  int64_t columns_ = 0;    ///< of the matmul
  int64_t rows_each_ = 1;  ///< of the kernel, per row of the matmul
  cpu::TileShape tiles_ = cpu::TileShape::all;
  jit::Partition partition_;
  std::vector<int64_t> parameters_;
  double nanoseconds_ = 0;
  int64_t scratch_bytes_ = 0;
  std::string text_;
};

}  // namespace fullbore
