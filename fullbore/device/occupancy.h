#pragma once
#include <cstdint>
#include <optional>

#include "fullbore/device/kernel.h"

namespace fullbore {

/// What keeps a multiprocessor from holding more threads of a kernel at once.
enum class OccupancyLimit : uint8_t { none, registers, shared_memory, block_size };

/// How many threads of a kernel a multiprocessor holds at once: at most, by what the kernel takes of it. How many there
/// are while it runs depends on how many blocks it has, too.
struct Occupancy {
  double share = 0;          ///< of the threads that a multiprocessor can hold, in [0, 1]
  int blocks = 0;            ///< at once on a multiprocessor
  int block_threads = 0;     ///< of a block
  int registers = 0;         ///< of a thread, 32 bits each
  int64_t shared_bytes = 0;  ///< of a block, its own and what its launch adds
  OccupancyLimit limit = OccupancyLimit::none;
  bool operator==(const Occupancy&) const = default;
};

/// What a Device derives from too, if its kernels run as blocks of threads on multiprocessors.
class OccupancySource {
 public:
  virtual ~OccupancySource() = default;
  /// Of a kernel that this device compiled: of its launches, the one that is held least. Empty: it launches nothing.
  /// DeviceError: its code cannot be loaded.
  virtual std::optional<Occupancy> occupancy(const Kernel& kernel) = 0;
};

}  // namespace fullbore
