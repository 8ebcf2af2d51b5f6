#include "fullbore/device/cuda/driver/launch_occupancy.h"

#include <algorithm>

namespace fullbore::cuda {
namespace {

// How registers and shared memory are dealt out, of capability 8.0 and later. Source: NVIDIA, "CUDA C++ Programming
// Guide", and the occupancy calculator of Nsight Compute.
constexpr int kWarpThreads = 32;
constexpr int kPartitions =
    4;  ///< of a multiprocessor: each has its registers, and a warp lies in one
constexpr int kWarpRegisters = 256;    ///< a warp has a multiple of them
constexpr int64_t kSharedBytes = 128;  ///< a block has a multiple of them

int64_t round_up(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

}  // namespace

Occupancy launch_occupancy(Context& context, const Launch& launch) {
  FunctionHandle const function =
      context.function(launch.module, launch.entry, launch.dynamic_shared_bytes);
  const Driver& driver = context.enter();
  const auto of_card = [&](CardAttribute which) {
    int value = 0;
    driver.card_attribute(&value, which, context.card().handle);
    return value;
  };
  const auto of_function = [&](FunctionAttribute which) {
    int value = 0;
    driver.function_attribute(&value, which, function);
    return value;
  };
  Occupancy found;
  found.block_threads = static_cast<int>(launch.block.x * launch.block.y * launch.block.z);
  found.registers = of_function(kFunctionRegisters);
  found.shared_bytes = of_function(kFunctionSharedBytes) + launch.dynamic_shared_bytes;
  driver.resident_blocks(&found.blocks, function, found.block_threads,
                         static_cast<size_t>(launch.dynamic_shared_bytes));
  const int most_threads = of_card(kMostThreads);
  found.share = static_cast<double>(found.blocks) * found.block_threads / most_threads;
  if (found.share >= 1) return found;

  // Blocks that each would allow by itself. What allows the fewest is the limit; of several, the first.
  const int64_t warps = round_up(found.block_threads, kWarpThreads) / kWarpThreads;
  const int64_t warp_registers =
      round_up(int64_t{std::max(found.registers, 1)} * kWarpThreads, kWarpRegisters);
  const int64_t by_registers =
      of_card(kMostRegisters) / kPartitions / warp_registers * kPartitions / warps;
  const int64_t block_bytes =
      round_up(found.shared_bytes + of_card(kReservedSharedBytes), kSharedBytes);
  const int64_t by_shared_bytes = of_card(kMostSharedBytes) / std::max<int64_t>(block_bytes, 1);
  const int64_t by_threads =
      std::min<int64_t>(most_threads / (warps * kWarpThreads), of_card(kMostBlocks));
  if (by_registers <= std::min(by_shared_bytes, by_threads))
    found.limit = OccupancyLimit::registers;
  else if (by_shared_bytes <= by_threads)
    found.limit = OccupancyLimit::shared_memory;
  else
    found.limit = OccupancyLimit::block_size;
  return found;
}

}  // namespace fullbore::cuda
