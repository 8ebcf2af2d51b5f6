#pragma once
#include <cstdint>
#include <limits>
#include <string>

namespace fullbore {

/// What the kernel lets the control groups (cgroups) of this process use.
struct ControlGroupLimits {
  int64_t memory_bytes = std::numeric_limits<int64_t>::max();   ///< the maximum: no limit
  double processors = std::numeric_limits<double>::infinity();  ///< CPU quota over its period
};

/// The least limits of this process's own groups and of every group above them, in cgroup v1, v2, or both
/// (mixed). Groups are found through /proc/self/cgroup and the mounts of /proc/self/mountinfo. In a container
/// whose mount shows a part of the hierarchy, the visible groups count. What is missing or unreadable sets no
/// limit.
///
/// memory: v2 memory.max and memory.high (above it the kernel reclaims and throttles); v1
///         memory.limit_in_bytes and hierarchical_memory_limit, which counts invisible groups too
/// CPU:    v2 cpu.max; v1 cpu.cfs_quota_us over cpu.cfs_period_us
///
/// `root`: put before every path that is read, so that tests can give a tree of files of their own.
/// Source: Linux, Documentation/admin-guide/cgroup-v1 and cgroup-v2.rst; cgroups(7); proc(5).
ControlGroupLimits control_group_limits(const std::string& root = "");

/// Where the kernel tells what the groups of this process use: folders of files, `root` included; "" where none is shown.
struct ControlGroupFolders {
  std::string memory;
  std::string processors;
  bool unified = false;  ///< both are of version 2
};
ControlGroupFolders control_group_folders(const std::string& root = "");

}  // namespace fullbore
