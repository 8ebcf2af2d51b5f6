#pragma once
#include <cstdint>
#include <memory>

#include "fullbore/device/device.h"

namespace fullbore {

/// Working memory on a device, which must outlive it. Programs that never run at the same time may share one: nothing in
/// it outlives a run, so it is as large as the largest of them needs.
class Arena {
 public:
  explicit Arena(Device& device) : device_(device) {}

  /// At least so many bytes; what was there is lost, and may lie elsewhere: programs record again. MemoryError if there
  /// are none.
  void reserve(int64_t bytes);
  /// Of the memory reserved: all that will soon be written.
  void make_resident(int64_t offset, int64_t bytes);
  Address address() const { return memory_ ? memory_->address() : Address{}; }
  int64_t bytes() const { return memory_ ? memory_->bytes() : 0; }

 private:
  Device& device_;
  std::unique_ptr<DeviceMemory> memory_;
};

}  // namespace fullbore
