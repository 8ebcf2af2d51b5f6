#pragma once
#include <compare>
#include <cstdint>

namespace fullbore {

/// A place in a device's memory. Only that device may follow it; others may compute with it.
struct Address {
  uint64_t value = 0;

  auto operator<=>(const Address&) const = default;
  Address operator+(int64_t bytes) const { return {value + static_cast<uint64_t>(bytes)}; }
};

}  // namespace fullbore
