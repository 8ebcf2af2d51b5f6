#include "fullbore/base/control_group.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <string>

#include "fullbore/base/threads.h"
#include "tests/support/scratch_folder.h"

/// Trees of files as the kernel shows them: /proc/self/cgroup, /proc/self/mountinfo and the groups' folders.
namespace fullbore {
namespace {

constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();
constexpr double kNoQuota = std::numeric_limits<double>::infinity();
constexpr int64_t kMiB = 1 << 20;

const char* const kUnifiedMount =
    "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
const char* const kMemoryMount =
    "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n";
const char* const kProcessorMount =
    "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw shared:9 - cgroup cgroup rw,cpu,cpuacct\n";

class ControlGroup : public ::testing::Test {
 protected:
  void put(const std::string& path, const std::string& text) const {
    const std::string full = folder_.path() + path;
    std::filesystem::create_directories(std::filesystem::path(full).parent_path());
    std::ofstream(full) << text;
  }
  void groups(const std::string& text) const { put("/proc/self/cgroup", text); }
  void mounts(const std::string& text) const {
    put("/proc/self/mountinfo", "22 1 254:1 / / rw,relatime - ext4 /dev/root rw\n" + text);
  }
  int64_t memory() const { return control_group_limits(folder_.path()).memory_bytes; }
  double processors() const { return control_group_limits(folder_.path()).processors; }

  const fullbore::testing::ScratchFolder folder_;
};

TEST_F(ControlGroup, UnifiedLimitsAreThoseOfTheOwnGroup) {
  groups("0::/job\n");
  mounts(kUnifiedMount);
  put("/sys/fs/cgroup/job/memory.max", "157286400\n");
  put("/sys/fs/cgroup/job/cpu.max", "150000 100000\n");
  EXPECT_EQ(memory(), 150 * kMiB);
  EXPECT_EQ(processors(), 1.5);
}

TEST_F(ControlGroup, TheLeastOfAllAncestorsCounts) {
  groups("0::/a/b/c\n");
  mounts(kUnifiedMount);
  put("/sys/fs/cgroup/a/b/c/memory.max", "max\n");
  put("/sys/fs/cgroup/a/b/memory.max", "300000000\n");
  put("/sys/fs/cgroup/a/memory.max", "200000000\n");
  put("/sys/fs/cgroup/memory.max", "400000000\n");
  put("/sys/fs/cgroup/a/b/c/cpu.max", "400000 100000\n");
  put("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  put("/sys/fs/cgroup/a/cpu.max", "50000 20000\n");
  EXPECT_EQ(memory(), 200000000);
  EXPECT_EQ(processors(), 2.5);
}

TEST_F(ControlGroup, AThrottledSizeIsALimitToo) {
  groups("0::/job\n");
  mounts(kUnifiedMount);
  put("/sys/fs/cgroup/job/memory.max", "300000000\n");
  put("/sys/fs/cgroup/job/memory.high", "250000000\n");
  EXPECT_EQ(memory(), 250000000);
}

TEST_F(ControlGroup, MaxAndMissingFilesAreNoLimits) {
  EXPECT_EQ(memory(), kNoLimit) << "no /proc at all";
  groups("0::/job\n");
  mounts(kUnifiedMount);
  EXPECT_EQ(memory(), kNoLimit);
  EXPECT_EQ(processors(), kNoQuota);
  put("/sys/fs/cgroup/job/memory.max", "max\n");
  put("/sys/fs/cgroup/job/cpu.max", "max 100000\n");
  EXPECT_EQ(memory(), kNoLimit);
  EXPECT_EQ(processors(), kNoQuota);
  put("/sys/fs/cgroup/job/memory.max", "");
  put("/sys/fs/cgroup/job/cpu.max", "nonsense\n");
  EXPECT_EQ(memory(), kNoLimit);
  EXPECT_EQ(processors(), kNoQuota);
}

TEST_F(ControlGroup, HierarchiesOfVersionOneAreFoundByTheirControllers) {
  groups("12:pids:/elsewhere\n4:memory:/a/b\n2:cpu,cpuacct:/c/d\n1:name=systemd:/a\n");
  mounts(std::string(kProcessorMount) + kMemoryMount);
  put("/sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "9223372036854771712\n");
  put("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "150000000\n");
  put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  put("/sys/fs/cgroup/memory/elsewhere/memory.limit_in_bytes", "1000\n");
  put("/sys/fs/cgroup/cpu,cpuacct/c/d/cpu.cfs_quota_us", "-1\n");
  put("/sys/fs/cgroup/cpu,cpuacct/c/d/cpu.cfs_period_us", "100000\n");
  put("/sys/fs/cgroup/cpu,cpuacct/c/cpu.cfs_quota_us", "300000\n");
  put("/sys/fs/cgroup/cpu,cpuacct/c/cpu.cfs_period_us", "200000\n");
  EXPECT_EQ(memory(), 150000000);
  EXPECT_EQ(processors(), 1.5);
}

TEST_F(ControlGroup, TheKernelsOwnSumOverInvisibleGroupsCounts) {
  groups("4:memory:/docker/abc\n");
  mounts("35 31 0:32 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n");
  put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  put("/sys/fs/cgroup/memory/memory.stat",
      "cache 0\nrss 4096\nhierarchical_memory_limit 123456789\ntotal_cache 0\n");
  EXPECT_EQ(memory(), 123456789);
}

// systemd's mixed mode: controllers in version 1, the unified tree for names alone.
TEST_F(ControlGroup, BothVersionsAreReadWhereBothAreMounted) {
  groups("4:memory:/job\n0::/init.scope\n");
  mounts(std::string(kMemoryMount) +
         "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
  put("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "300000000\n");
  put("/sys/fs/cgroup/unified/init.scope/cpu.max", "100000 100000\n");
  EXPECT_EQ(memory(), 300000000);
  EXPECT_EQ(processors(), 1.0);
  put("/sys/fs/cgroup/unified/memory.max", "200000000\n");
  EXPECT_EQ(memory(), 200000000);
}

// A container without a cgroup namespace: the path is the host's, the mount shows the container's part.
TEST_F(ControlGroup, AMountThatShowsAPartIsWalkedFromThere) {
  groups("0::/docker/abc/inner\n");
  mounts("30 23 0:26 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n");
  put("/sys/fs/cgroup/memory.max", "200000000\n");
  put("/sys/fs/cgroup/inner/memory.max", "250000000\n");
  put("/sys/fs/cgroup/docker/abc/inner/memory.max", "1000\n");  // no such group: another's name
  EXPECT_EQ(memory(), 200000000);
  put("/sys/fs/cgroup/inner/memory.max", "150000000\n");
  EXPECT_EQ(memory(), 150000000);
}

TEST_F(ControlGroup, AGroupThatNoMountShowsIsTheMountPoint) {
  mounts("30 23 0:26 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n");
  put("/sys/fs/cgroup/memory.max", "200000000\n");
  put("/sys/fs/cgroup/cpu.max", "200000 100000\n");
  for (const char* const path :
       {"0::/docker/abcdef\n", "0::/kubepods/pod1\n", "0::/\n", "0::/../../other\n"}) {
    groups(path);
    EXPECT_EQ(memory(), 200000000) << path;
    EXPECT_EQ(processors(), 2.0) << path;
  }
}

TEST_F(ControlGroup, AFolderThatIsNotThereLeavesThoseAboveIt) {
  groups("0::/host/path/of/job\n");
  mounts(kUnifiedMount);
  put("/sys/fs/cgroup/memory.max", "200000000\n");
  EXPECT_EQ(memory(), 200000000);
  groups("0::/../sibling\n");
  put("/sys/fs/sibling/memory.max", "1000\n");  // no group: above the mount point
  EXPECT_EQ(memory(), 200000000);
}

TEST_F(ControlGroup, WithoutAListOfGroupsTheMountsAreRead) {
  mounts(kUnifiedMount);
  put("/sys/fs/cgroup/memory.max", "200000000\n");
  EXPECT_EQ(memory(), 200000000);
}

TEST_F(ControlGroup, MountPointsMayHaveBlanks) {
  groups("0::/a b\n");
  mounts("30 23 0:26 / /sys/my\\040groups rw - cgroup2 cgroup2 rw\n");
  put("/sys/my groups/a b/memory.max", "200000000\n");
  EXPECT_EQ(memory(), 200000000);
}

class Quota : public ControlGroup {
 protected:
  Quota() {
    groups("0::/job\n");
    mounts(kUnifiedMount);
  }
  int processors_under(const std::string& quota) const {
    put("/sys/fs/cgroup/job/cpu.max", quota);
    return available_processors(folder_.path());
  }
};

TEST_F(Quota, IsRoundedUpToWholeProcessors) {
  const int all = available_processors(folder_.path());
  EXPECT_EQ(processors_under("10000 100000"), 1);
  EXPECT_EQ(processors_under("100000 100000"), 1);
  EXPECT_EQ(processors_under("100001 100000"), std::min(all, 2));
  EXPECT_EQ(processors_under("max 100000"), all);
  EXPECT_EQ(processors_under("99900000 100000"), all) << "a quota adds no processors";
}

TEST_F(Quota, TheAffinityMaskCountsBesideIt) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++i)
    if (CPU_ISSET(i, &before)) CPU_SET(i, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(processors_under("400000 100000"), 1);
  ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
}

}  // namespace
}  // namespace fullbore
