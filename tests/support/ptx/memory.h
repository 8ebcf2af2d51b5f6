#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tests/support/ptx/clock.h"

namespace fullbore::ptx {

/// Who touched a byte, and when: two accesses of different threads are ordered if a barrier of their block, or of their
/// warp, lies between them. Where threads have clocks, these tell.
struct Access {
  uint32_t thread =
      0;  ///< number in the grid, plus 1; 0: nobody. A block begins with a multiple of its stride
  uint32_t block_phase = 0;      ///< barriers of the block before it; or its step, by a clock
  uint32_t warp_phase : 31 = 0;  ///< barriers of the warp before it
  uint32_t is_atomic : 1 = 0;
};

/// By what an access is ordered behind others.
struct Order {
  uint32_t block_stride =
      0;  ///< threads from one block to the next, a multiple of a warp, the same until all is forgotten
  const Clock* clock = nullptr;  ///< of whoever makes it, if it has one
};

/// Of each byte of some memory who wrote it last, and who has read it since; two readers are remembered. Takes memory for
/// what is touched alone.
class AccessHistory {
 public:
  explicit AccessHistory(size_t bytes) : pages_((bytes + kPageBytes - 1) / kPageBytes) {}
  /// The access that conflicts with this one, if there is one; else notes it.
  std::optional<Access> read(int64_t offset, int64_t bytes, const Access& now, const Order& order);
  std::optional<Access> write(int64_t offset, int64_t bytes, const Access& now, const Order& order);
  /// A write that was ordered behind all others when it began.
  void end_write(int64_t offset, int64_t bytes, const Access& now);
  void forget();

 private:
  static constexpr size_t kPageBytes = 1024;
  struct Byte {
    Access writer;
    Access readers[2];
  };
  using Page = std::array<Byte, kPageBytes>;
  Byte& at(size_t offset);

  std::vector<std::unique_ptr<Page>> pages_;
  std::vector<size_t> touched_;  ///< pages that there are
};

/// The memory of a device: allocations at addresses that a host cannot follow, apart from one another, so that an index
/// beyond one is met.
class DeviceMemory {
 public:
  struct Allocation {
    uint64_t address = 0;
    std::vector<std::byte> bytes;
    std::unique_ptr<AccessHistory> history = {};  ///< of the launch that runs
  };

  /// Filled with a pattern that is no number: what nobody wrote is seen.
  uint64_t allocate(int64_t bytes);
  /// False: no allocation begins there.
  bool free(uint64_t address) { return allocations_.erase(address) > 0; }
  /// The bytes at [address, address + bytes); none where they are not in one allocation.
  std::span<std::byte> at(uint64_t address, int64_t bytes);
  Allocation* find(uint64_t address);
  /// What a launch has done is ordered before the next one.
  void forget_accesses();

 private:
  std::map<uint64_t, Allocation> allocations_;
  uint64_t next_ = 0x7000'0000'0000;
};

}  // namespace fullbore::ptx
