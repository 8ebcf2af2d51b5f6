#pragma once
#include <cstdint>
#include <memory>

#include "fullbore/device/device.h"

namespace fullbore {

/// Beside Device, found by a cast: a device with memory of its own that keeps State in the host's (open_device(),
/// `moments_in_host`), pinned, so that it copies there and back by itself while it computes.
class StateInHost {
 public:
  virtual ~StateInHost() = default;
  /// Zeroed memory of the host at an address of the device's: its reads, writes and copies, and the copies that a Recorder
  /// takes down, may name it. No kernel may. MemoryError that tells the size if there is none.
  virtual std::unique_ptr<DeviceMemory> allocate_in_host(int64_t bytes) = 0;
};

}  // namespace fullbore
