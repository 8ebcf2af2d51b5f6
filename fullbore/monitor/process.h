#pragma once
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace fullbore {

/// When this process was started, to ten milliseconds; now, where the system does not tell.
std::chrono::steady_clock::time_point process_start();

/// Resident set of this process now, in bytes; 0 where the system does not tell.
int64_t resident_bytes();
/// The largest it has been, in bytes.
int64_t peak_resident_bytes();
/// Counts the peak anew from now on, where the kernel can (Linux 4.0, /proc/self/clear_refs).
void forget_peak_resident_bytes();

/// Processors that the machine has, whatever this process may use of them.
int online_processors();

/// Free bytes of the file system that holds `folder` (or its nearest existing parent); -1 unknown.
int64_t free_disk_bytes(const std::string& folder);

/// Bytes of memory that this process may use: the machine's, or the least limit of its control groups and its own
/// (ulimit -v and -d).
/// `root`: see base/control_group.h.
int64_t memory_limit_bytes(const std::string& root = "");

}  // namespace fullbore
