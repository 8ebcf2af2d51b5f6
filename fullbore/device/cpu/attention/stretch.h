#pragma once
#include <cstdint>

#include "fullbore/device/cpu/kernels/elements.h"

namespace fullbore::cpu {

/// Memory that will be read soon.
struct Stretch {
  const char* data = nullptr;
  int64_t bytes = 0;

  /// Part i of n is asked for, line by line, into the second cache: a processor waits for several times as many lines there as
  /// on their way into the first (11 GB/s and 34 by one core of a Zen 4 that reads pages of 4 KiB in any order from memory).
  /// Always inlined: GCC 12 takes a call of a function that does nothing but this for one without an effect, and drops it.
  __attribute__((always_inline)) void ask(int64_t i, int64_t n) const {
    constexpr int64_t kLine = 64;
    const int64_t lines = divide_up(bytes, kLine);
    for (int64_t line = lines * i / n; line < lines * (i + 1) / n; ++line)
      __builtin_prefetch(data + line * kLine, 0, 2);
  }
};

}  // namespace fullbore::cpu
