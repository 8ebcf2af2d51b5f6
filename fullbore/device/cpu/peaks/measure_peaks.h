#pragma once
#include <span>

#include "fullbore/base/threads.h"
#include "fullbore/device/peaks.h"

namespace fullbore::cpu {

/// Measures on all workers at once: multiply-adds out of registers, and the triad a = b + s c over arrays larger
/// than the caches, counting three streams (McCalpin 1995, STREAM). Each in rounds with pauses, until eight in a row
/// have not raised the best: other processes can only slow it down. `lent`: the memory that is lent, aligned to 64
/// bytes.
MeasuredPeaks measure_peaks(ThreadPool& pool, const PeakMemory& memory, std::span<char> lent);

}  // namespace fullbore::cpu
