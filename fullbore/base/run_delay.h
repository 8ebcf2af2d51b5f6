#pragma once
#include <cstdint>
#include <optional>

namespace fullbore {

/// The kernel's number of the calling thread.
int thread_id();

/// Nanoseconds that a thread of this process has waited for a processor while it could have run, since it began: what
/// other work on its processor cost it. None where the kernel does not count it. Allocates nothing.
/// Source: Documentation/scheduler/sched-stats.rst of Linux, "/proc/<pid>/schedstat".
std::optional<int64_t> run_delay_ns(int thread_id, const char* proc = "/proc");

}  // namespace fullbore
