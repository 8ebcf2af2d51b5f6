#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "fullbore/device/device.h"

namespace fullbore {

/// Working memory on a device, which must outlive it. Programs that never run at the same time may share one: nothing in
/// it outlives a run, so it is as large as the largest of them needs.
class Arena {
 public:
  explicit Arena(Device& device) : device_(device) {}

  /// At least so many bytes; what was there is lost, and may lie elsewhere: users leave, and programs record again.
  /// MemoryError if there are none.
  void reserve(int64_t bytes);
  /// Of the memory reserved: all that will soon be written.
  void make_resident(int64_t offset, int64_t bytes);
  Address address() const { return memory_ ? memory_->address() : Address{}; }
  int64_t bytes() const { return memory_ ? memory_->bytes() : 0; }

  /// Has told a device where the memory is: `leave` is called before it is given back, so that nothing on the device
  /// knows of memory that is not there.
  class User {
   public:
    User(std::shared_ptr<Arena> arena, std::function<void()> leave);
    ~User();
    User(const User&) = delete;
    User& operator=(const User&) = delete;

   private:
    friend Arena;
    std::shared_ptr<Arena> arena_;
    std::function<void()> leave_;
  };

 private:
  Device& device_;
  std::unique_ptr<DeviceMemory> memory_;
  std::vector<User*> users_;
};

}  // namespace fullbore
