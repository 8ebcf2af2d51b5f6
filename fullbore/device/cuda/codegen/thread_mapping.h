#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "fullbore/device/cuda/cuda_kernel.h"
#include "fullbore/device/kernel_ir/kernel_ir.h"
#include "fullbore/device/kernel_ir/loop_placement.h"

namespace fullbore::cuda {

/// Which thread evaluates which points of a kernel. It follows from the kernel's extents alone, so that equal nodes have
/// equal bits.
struct ThreadMapping {
  enum class Kind : uint8_t {
    map,     ///< nothing is reduced: a thread has `copies` lanes of one row
    rows,    ///< reductions along the row: `group` threads, or a block, share its points
    columns  ///< independent lanes: a thread for each, or kColumnThreads that share its serial loops
  };
  Kind kind = Kind::map;
  /// rows: threads that share a row, a power of two up to 32; 0: a block. columns: threads that share a lane.
  int group = 1;
  int copies = 1;  ///< points that a thread evaluates side by side
  /// Are these neighbours in memory, read and written at once, rather than a step apart?
  bool wide = false;
  bool narrow = false;  ///< 32 bits hold every index
  bool scans = false;
  /// Chunks of the reduced points that blocks reduce apart; a second entry combines them: a thread for each result in the
  /// order of chunks, or a warp, each lane every 32nd chunk, then the lanes by halves.
  bool splits = false;
  bool combines_by_warps = false;
  bool by_large_blocks =
      false;  ///< of kMostRowThreads: very long rows that are scanned, or read more than once
  /// Per access, in the order of accesses(): are `copies` neighbours aligned to their size wherever the buffers are to 16
  /// bytes?
  std::vector<bool> aligned;

  // Not part of the code.
  Extent block;
  int64_t lane_blocks = 1;
  int64_t chunk_points = 0;
  int64_t chunks = 1;
  int64_t blocks = 0;

  /// What the code depends on besides the kernel's text.
  std::string text() const;
};

/// Threads that share a lane of a column kernel with long serial loops, and the lanes of their block: a warp's.
inline constexpr int kColumnThreads = 8;
inline constexpr int kColumnLanes = 32;
/// Threads of a block at most: so many may have 255 registers each.
inline constexpr int kMostThreads = 256;
/// Of a block that goes over a very long row, in 64 registers each. Where it does so again, what a card's rows in work have is less
/// than its L2, and comes from there the second time: 2048 rows of 50304 numbers of 16 bits, softmax and its gradient, took
/// 389 us on an H200 by blocks of 256, for bytes that its memory moves in 100. Where it scans, each step waits for the one before.
inline constexpr int kMostRowThreads = 1024;

ThreadMapping map_threads(const jit::KernelIr& kernel, const jit::LoopPlacement& placement);

/// Points that a row's reductions combine: serial loops and, if they are reduced, lanes.
int64_t reduced_points(const jit::KernelIr& kernel);
/// Results of a kernel that splits: one a row, or a row's lane.
int64_t result_count(const jit::KernelIr& kernel);
/// Ids of the kernel's reductions.
std::vector<size_t> reductions(const jit::KernelIr& kernel);
/// Loads, then stores.
std::vector<const jit::Access*> accesses(const jit::KernelIr& kernel);

}  // namespace fullbore::cuda
