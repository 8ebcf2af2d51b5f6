#pragma once
#include <memory>
#include <vector>

#include "tests/support/ptx/machine.h"
#include "tests/support/ptx/mbarrier.h"

namespace fullbore::ptx {

class Cluster;

/// A block of threads while it runs.
class Block {
 public:
  Block(Cluster& cluster, uint32_t rank, uint64_t index, uint64_t seed);

  const Launch& launch() const;
  const Kernel& kernel() const { return *launch().kernel; }
  DeviceMemory& memory();
  Cluster& cluster() { return cluster_; }
  uint32_t rank() const { return rank_; }  ///< in the cluster
  uint64_t index() const { return index_; }
  /// Of its first thread in the grid.
  uint64_t first_thread() const { return index_ * stride_; }
  uint32_t stride() const { return stride_; }
  // Numbers behind those of its threads, where these have clocks: of what a warpgroup's products read, where a step is a
  // group of them; and of what comes behind an mbarrier's phases, where a step is a phase.
  uint64_t warpgroup_number(uint32_t thread) const;
  uint64_t mbarrier_number(const Mbarrier& of) const;
  /// "thread 3 of block 1", or what else touched a byte.
  std::string name_of(const Access& access) const;
  Extent place() const;
  uint64_t noise();

  std::vector<std::byte>& shared() { return shared_; }
  AccessHistory& shared_history() { return shared_history_; }
  /// Of each byte: the thread whose cp.async brings it, plus 1; kBox: of a tensor; 0: none.
  std::vector<uint32_t>& pending() { return pending_; }
  static constexpr uint32_t kBox = ~0U;
  /// Of kernels with clocks. Of each byte: the thread that wrote it and has made no fence since, plus 1.
  std::vector<uint32_t>& unshown() { return unshown_; }
  Mbarriers& mbarriers() { return mbarriers_; }
  /// The allocation that an instruction met last.
  DeviceMemory::Allocation*& met_by(int position) { return met_[static_cast<size_t>(position)]; }

  std::vector<Lane>& lanes() { return lanes_; }
  bool has_ended() const;
  /// Threads go on that have met those that they wait for; were there any?
  bool release();
  /// Has the warpgroup of that thread made so many groups of products?
  bool have_committed(uint32_t thread, uint32_t groups) const;
  /// When all of its threads have ended: whatever it was that others did to it, it has to know.
  void end() const;

 private:
  bool release_block_barrier();
  bool release_warp(std::span<Lane> warp);
  void order(std::span<Lane> lanes);
  void check_products() const;
  [[noreturn]] void fail(const std::string& what) const;

  Cluster& cluster_;
  uint32_t rank_;
  uint64_t index_;
  uint64_t random_;
  uint32_t threads_, stride_;
  std::vector<std::byte> shared_;
  AccessHistory shared_history_;
  std::vector<uint32_t> pending_, unshown_;
  Mbarriers mbarriers_;
  std::vector<DeviceMemory::Allocation*> met_;
  std::vector<Lane> lanes_;
};

}  // namespace fullbore::ptx
