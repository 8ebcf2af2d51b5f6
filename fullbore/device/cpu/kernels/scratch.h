#pragma once
#include <cstdint>

#include "fullbore/device/cpu/kernels/elements.h"

namespace fullbore::cpu {

/// Hands out parts of a worker's scratch memory or, without any, counts what they need.
class Scratch {
 public:
  explicit Scratch(char* base = nullptr) : base_(base) {}
  template <class T>
  T* take(int64_t count) {
    char* at = base_ ? base_ + bytes_ : nullptr;
    bytes_ += round_up(count * static_cast<int64_t>(sizeof(T)), 64);
    return reinterpret_cast<T*>(at);
  }
  int64_t bytes() const { return bytes_; }

 private:
  char* base_;
  int64_t bytes_ = 0;
};

}  // namespace fullbore::cpu
