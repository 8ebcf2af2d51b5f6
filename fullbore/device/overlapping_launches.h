#pragma once
#include <cstdint>

namespace fullbore {

/// What the Compiler of a device derives from too, if the device runs launches side by side wherever none of them needs the
/// bytes of another. Then bytes that are reused at once are in the way: a plan reuses those of small values later.
class OverlappingLaunches {
 public:
  virtual ~OverlappingLaunches() = default;
  /// A launch that makes a value of more bytes fills the device by itself.
  virtual int64_t small_value_bytes() const = 0;
};

}  // namespace fullbore
