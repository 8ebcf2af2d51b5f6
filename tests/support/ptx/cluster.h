#pragma once
#include <memory>
#include <vector>

#include "tests/support/ptx/block.h"

namespace fullbore::ptx {

/// A box of a tensor on its way to a block.
struct BoxCopy {
  Block* to = nullptr;
  int64_t offset = 0;
  std::shared_ptr<const std::vector<std::byte>> bytes;
  Mbarrier* mbarrier = nullptr;
};

/// Blocks that run together, and what is on its way between them.
class Cluster {
 public:
  Cluster(const Launch& launch, DeviceMemory& memory, uint64_t first_block, uint64_t seed);

  /// Until all threads have ended. Returns how many instructions they made.
  int64_t run(int64_t most_instructions);

  const Launch& launch() const { return launch_; }
  DeviceMemory& memory() { return memory_; }
  uint32_t size() const { return static_cast<uint32_t>(blocks_.size()); }
  Block& block(uint32_t rank) { return *blocks_[rank]; }
  /// A thread arrives at the barrier of the cluster, for the n-th time (from 1 on).
  void arrive(Lane& lane, uint32_t n);
  void send(BoxCopy copy) { copies_.push_back(std::move(copy)); }
  bool is_sent_to(const Block& block) const;

 private:
  bool run(Lane& lane, int64_t most_instructions);
  bool release_cluster_barrier();
  bool complete_copy();
  uint64_t draw(uint64_t below);
  [[noreturn]] void fail_deadlock();

  const Launch& launch_;
  DeviceMemory& memory_;
  uint64_t random_;
  std::vector<std::unique_ptr<Block>> blocks_;
  std::vector<BoxCopy> copies_;
  struct Arrivals {
    uint32_t n = 0;
    Clock known;
  };
  Arrivals
      arrivals_[2];  ///< at the barrier of the cluster: the n-th, and the ones before or behind
};

/// splitmix64: the next of a sequence.
uint64_t mixed(uint64_t& state);

}  // namespace fullbore::ptx
