#include "fullbore/device/kernel_ir/partition.h"

#include <algorithm>

namespace fullbore::jit {
namespace {

using Kind = Instruction::Kind;

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

// What one point costs, in units of a simple operation on it.
double point_cost(const KernelIr& kernel) {
  double cost = 1;
  for (const Instruction& instruction : kernel.instructions)
    if (instruction.kind == Kind::scalar)
      cost += std::max(is_philox(instruction.op) ? 40.0 : 0.5, scalar_op_flops(instruction.op));
  return cost;
}

}  // namespace

Partition make_partition(const KernelIr& kernel) {
  constexpr int64_t kLaneStep = 256;  // a multiple of what any main loop takes at once
  const auto grain = static_cast<int64_t>(65536 / (4 + point_cost(kernel)));
  int64_t serial = 1;
  for (int64_t extent : kernel.serial) serial *= extent;
  const bool walks = std::any_of(
      kernel.instructions.begin(), kernel.instructions.end(), [](const Instruction& instruction) {
        return instruction.kind == Kind::reduce || instruction.kind == Kind::scan;
      });
  Partition partition;
  partition.lanes_per_item = std::max<int64_t>(kernel.lanes, 1);
  const int64_t row = serial * kernel.lanes;
  if (row > grain && (!walks || kernel.columns())) {
    // Column kernels read tiles of rows: at least a few cache lines of each.
    const int64_t step = kernel.columns() ? 64 : kLaneStep;
    const int64_t wanted =
        divide_up(std::max<int64_t>(grain / std::max<int64_t>(serial, 1), 1), step);
    partition.lanes_per_item = std::min(partition.lanes_per_item, wanted * step);
  }
  // No lanes, nothing to do; but a reduction over nothing still has its result to write.
  partition.lane_blocks = kernel.lanes == 0 && walks && !kernel.columns()
                              ? 1
                              : divide_up(kernel.lanes, partition.lanes_per_item);
  if (partition.lane_blocks == 1)
    partition.rows_per_item = std::max<int64_t>(1, grain / std::max<int64_t>(row, 1));
  partition.items = divide_up(kernel.rows(), partition.rows_per_item) * partition.lane_blocks;
  return partition;
}

KernelWork kernel_work(const KernelIr& kernel) {
  KernelWork work;
  const auto points = static_cast<double>(kernel.points());
  for (const Instruction& instruction : kernel.instructions) {
    if (instruction.kind == Kind::scalar)
      work.flops += points * std::max(0.25, scalar_op_flops(instruction.op));
    if (instruction.kind == Kind::reduce || instruction.kind == Kind::scan) work.flops += points;
  }
  std::vector<double> touched(kernel.buffers.size(), 0);
  const auto touch = [&](int buffer) {
    const KernelBuffer& b = kernel.buffers[static_cast<size_t>(buffer)];
    touched[static_cast<size_t>(buffer)] = std::min(points, static_cast<double>(b.elements)) *
                                           static_cast<double>(dtype_bytes(b.dtype));
  };
  for (const Instruction& instruction : kernel.instructions)
    if (instruction.kind == Kind::load) touch(instruction.access.buffer);
  for (const Store& store : kernel.stores) touch(store.access.buffer);
  for (double bytes : touched) work.bytes += bytes;
  return work;
}

// 8 flops and 8 bytes per nanosecond: one core, vectorised, out of its second-level cache.
double KernelWork::nanoseconds() const { return 50 + std::max(flops / 8, bytes / 8); }

}  // namespace fullbore::jit
