#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "fullbore/device/device.h"
#include "fullbore/plan/written_memory.h"

namespace fullbore {

/// Working memory on a device, which must outlive it. Programs that never run at the same time may share one: nothing in
/// it outlives a run, so it is as large as the largest of them needs.
class Arena {
 public:
  explicit Arena(Device& device) : device_(device) {}

  /// At least so many bytes; what was there is lost, and may lie elsewhere: users leave, and programs record again.
  /// MemoryError if there are none.
  void reserve(int64_t bytes);
  /// What one of the programs writes on every run (plan/written_memory.h). Of the rest, which none of them does, the
  /// device has pages for pieces alone.
  void expect_writes(std::span<const ByteRange> ranges);
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
  void tell_expected_writes();

  Device& device_;
  std::unique_ptr<DeviceMemory> memory_;
  std::vector<ByteRange> written_;  ///< by any of the programs; none: nobody has said
  std::vector<User*> users_;
};

}  // namespace fullbore
