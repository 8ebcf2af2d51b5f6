#pragma once
#include <memory>
#include <vector>

#include "tests/support/ptx/machine.h"

namespace fullbore::ptx {

/// A block of threads while it runs.
class Block {
 public:
  Block(const Launch& launch, DeviceMemory& memory, uint64_t index, uint64_t seed);

  /// Until all of its threads have ended. Returns how many instructions they made.
  int64_t run(int64_t most_instructions);

  const Launch& launch() const { return launch_; }
  const Kernel& kernel() const { return *launch_.kernel; }
  DeviceMemory& memory() { return memory_; }
  uint64_t index() const { return index_; }
  /// Of its first thread in the grid.
  uint64_t first_thread() const { return index_ * stride_; }
  uint32_t stride() const { return stride_; }
  Extent place() const;
  uint64_t noise() { return next_random(); }

  std::vector<std::byte>& shared() { return shared_; }
  AccessHistory& shared_history() { return shared_history_; }
  /// Of each byte: the thread whose cp.async brings it, plus 1; 0: none.
  std::vector<uint32_t>& pending() { return pending_; }
  // Of kernels that have products of warpgroups. Of each byte: the thread that wrote it and has made no fence since, plus
  // 1. Of each 16 bytes: how many products on their way read it.
  std::vector<uint32_t>& unshown() { return unshown_; }
  std::vector<uint32_t>& read_by_products() { return read_by_products_; }
  /// The allocation that an instruction met last.
  DeviceMemory::Allocation*& met_by(int position) { return met_[static_cast<size_t>(position)]; }

 private:
  uint64_t next_random();
  bool release_block_barrier();
  bool release_warps();
  bool release_warp(std::span<Lane> warp);
  [[noreturn]] void fail_deadlock() const;
  void check_products() const;

  const Launch& launch_;
  DeviceMemory& memory_;
  uint64_t index_;
  uint64_t random_;
  uint32_t stride_;
  std::vector<std::byte> shared_;
  AccessHistory shared_history_;
  std::vector<uint32_t> pending_;
  std::vector<uint32_t> unshown_, read_by_products_;
  std::vector<DeviceMemory::Allocation*> met_;
  std::vector<Lane> lanes_;
};

}  // namespace fullbore::ptx
