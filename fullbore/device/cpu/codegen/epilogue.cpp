#include "fullbore/device/cpu/codegen/epilogue.h"

#include <algorithm>

#include "fullbore/base/check.h"
#include "fullbore/device/kernel_ir/overlay.h"
#include "fullbore/device/kernel_ir/partition.h"
#include "fullbore/ir/fused_matmul.h"

namespace fullbore {
namespace {

using cpu::TileShape;
using Kind = jit::Instruction::Kind;

std::vector<int64_t> extents_of(const jit::KernelIr& kernel) {
  std::vector<int64_t> extents = kernel.outer;
  extents.insert(extents.end(), kernel.serial.begin(), kernel.serial.end());
  extents.push_back(kernel.lanes);
  return extents;
}

// Every load of the buffer.
template <class Kernel, class Visit>
void for_each_load(Kernel& kernel, int buffer, const Visit& visit) {
  for (auto& instruction : kernel.instructions)
    if (instruction.kind == Kind::load && instruction.access.buffer == buffer)
      visit(instruction.access);
}

int place_of(const jit::LoweredPiece& piece, int buffer) {
  const auto found = std::find(piece.buffers.begin(), piece.buffers.end(), buffer);
  return found == piece.buffers.end() ? -1 : static_cast<int>(found - piece.buffers.begin());
}

}  // namespace

Epilogue::Epilogue(const Node& node, jit::LoweredPiece lowered)
    : piece_(std::move(lowered)),
      inputs_(static_cast<int>(node.inputs.size())),
      extra_buffer_(inputs_ + static_cast<int>(node.outputs.size())),
      nanoseconds_(jit::kernel_work(piece_.kernel).nanoseconds()) {
  const Node& matmul = *fused_matmul(node);
  const Shape& shape = node.body->type(matmul.outputs[0]).shape;
  columns_ = shape[shape.rank() - 1];
  rows_ = shape.elements() / columns_;
  for (size_t i = 0; i < node.body->outputs().size(); ++i)
    if (node.body->outputs()[i].value == matmul.outputs[0] && matmul_result_ < 0)
      matmul_result_ = inputs_ + static_cast<int>(i);
  text_ = jit::ops_text(std::span(node.body->nodes()).subspan(1));
  choose_tiles();
  scratch_bytes_ = jit::scratch_bytes(piece_.kernel);
}

// Is the matmul's element at each point of the kernel's loops the one that is there in row-major order?
bool Epilogue::reads_in_order() const {
  const std::vector<int64_t> extents = extents_of(piece_.kernel);
  bool in_order = true;
  for_each_load(piece_.kernel, place_of(piece_, extra_buffer_), [&](const jit::Access& access) {
    in_order =
        in_order && access.divisor == 1 && access.predicates.empty() && access.address.offset == 0;
    int64_t stride = 1;
    for (size_t i = extents.size(); i-- > 0; stride *= extents[i])
      in_order = in_order && (extents[i] == 1 || access.address.coefficients[i] == stride);
    for (size_t i = extents.size(); i < access.address.coefficients.size(); ++i)
      in_order = in_order && access.address.coefficients[i] == 0;
  });
  return in_order && piece_.kernel.points() == rows_ * columns_;
}

void Epilogue::choose_tiles() {
  const jit::KernelIr& kernel = piece_.kernel;
  tiles_ = TileShape::all;
  if (kernel.columns() || !reads_in_order()) return;
  const bool walks = std::any_of(
      kernel.instructions.begin(), kernel.instructions.end(), [](const auto& instruction) {
        return instruction.kind == Kind::reduce || instruction.kind == Kind::scan;
      });
  const int64_t width = kernel.points() / kernel.rows();
  if (!walks && kernel.serial.empty() && width % columns_ == 0) {
    if (width != columns_) split_lanes(width / columns_, columns_);
    tiles_ = TileShape::any;
  } else if (columns_ % width == 0) {
    rows_each_ = columns_ / width;
    tiles_ = TileShape::rows;
  }
}

// The lanes as rows of lanes.
void Epilogue::split_lanes(int64_t rows, int64_t width) {
  jit::KernelIr& kernel = piece_.kernel;
  FB_CHECK(kernel.serial.empty() && kernel.lanes == rows * width, "{} lanes", kernel.lanes);
  const auto lane = static_cast<std::ptrdiff_t>(kernel.lane_loop());
  const auto split = [&](jit::Form& form) {
    const int64_t step = form.coefficients[static_cast<size_t>(lane)];
    form.coefficients.insert(form.coefficients.begin() + lane, step * width);
  };
  const auto split_access = [&](jit::Access& access) {
    split(access.address);
    for (jit::Predicate& predicate : access.predicates) split(predicate.form);
  };
  for (jit::Instruction& instruction : kernel.instructions) {
    if (instruction.kind == Kind::index) split(instruction.form);
    if (instruction.kind == Kind::load) split_access(instruction.access);
    if (instruction.kind == Kind::inside)
      for (jit::Predicate& predicate : instruction.access.predicates) split(predicate.form);
  }
  for (jit::Store& store : kernel.stores) split_access(store.access);
  kernel.outer.push_back(rows);
  kernel.lanes = width;
}

void Epilogue::cut(const cpu::GemmTiling& tiling, int64_t stride) {
  partition_ = jit::make_partition(piece_.kernel);
  jit::KernelIr kernel = piece_.kernel;
  if (tiles_ != TileShape::all) {
    const bool by_column = tiles_ == TileShape::any;
    partition_.rows_per_item = tiling.rows.size * rows_each_;
    partition_.lanes_per_item = by_column ? tiling.columns.size : kernel.lanes;
    partition_.lane_blocks = by_column ? tiling.columns.parts() : 1;
    partition_.items = tiling.rows.parts() * partition_.lane_blocks;
  }
  FB_CHECK(stride == columns_ || tiles_ == TileShape::any, "rows {} apart", stride);
  for_each_load(kernel, place_of(piece_, extra_buffer_), [&](jit::Access& access) {
    for (size_t loop = 0; stride != columns_ && loop < kernel.outer.size(); ++loop)
      access.address.coefficients[loop] = access.address.coefficients[loop] / columns_ * stride;
  });
  parameters_ = jit::parameters(kernel, partition_);
}

bool Epilogue::may_alias(int input, int output) const {
  return inputs_ + output != matmul_result_ && jit::overlays(piece_, input, inputs_ + output);
}

void Epilogue::run(void* const* buffers, const void* matmul, int64_t row, int64_t column,
                   void* scratch) const {
  void* own[jit::kMostBuffers + 1];
  for (size_t i = 0; i < piece_.buffers.size(); ++i)
    own[i] =
        piece_.buffers[i] == extra_buffer_ ? const_cast<void*>(matmul) : buffers[piece_.buffers[i]];
  own[piece_.buffers.size()] = scratch;
  const bool all = tiles_ == TileShape::all;
  const int64_t item = all ? 0 : row * partition_.lane_blocks + column;
  slot_->code->function()(own, parameters_.data(), item, all ? partition_.items : item + 1);
}

}  // namespace fullbore
