#include "tests/cuda/kept_code.h"

#include <fmt/format.h>
#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace fullbore::cuda {
namespace {

namespace fs = std::filesystem;

constexpr uint32_t kIgnoresModes = 1U << CAP_DAC_OVERRIDE | 1U << CAP_DAC_READ_SEARCH;

/// Of the calling thread, and of those that it starts from then on. Returns what it was.
uint32_t exchange_effective(uint32_t taken_away, uint32_t added) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {};
  if (::syscall(SYS_capget, &header, data) != 0) return 0;
  const uint32_t before = data[0].effective;
  data[0].effective = (before & ~taken_away) | added;
  EXPECT_EQ(::syscall(SYS_capset, &header, data), 0);
  return before;
}

void limit_files(uint64_t bytes) {
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &limit), 0);
  limit.rlim_cur = bytes;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
}

}  // namespace

void KeptCode::SetUp() {
  LoopPrograms::SetUp();
  ::unsetenv("FULLBORE_COMPILE_CACHE");
}

std::string KeptCode::fresh(const std::string& name) const {
  static int made = 0;
  return scratch_ / fmt::format("{}.{}", name, ++made);
}

std::string KeptCode::folder() { return std::string(std::getenv("FULLBORE_CACHE")) + "/cards"; }

std::vector<std::string> KeptCode::entries() {
  std::vector<std::string> found;
  if (fs::exists(folder()))
    for (const auto& each : fs::directory_iterator(folder())) found.push_back(each.path().string());
  return found;
}

void KeptCode::write(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

void KeptCode::fail(const char* call, int64_t code, int64_t at) {
  std::memset(fake().fail_call, 0, sizeof fake().fail_call);
  std::strncpy(fake().fail_call, call, sizeof fake().fail_call - 1);
  fake().fail_code = code;
  fake().fail_at = at;
}

WithoutPrivileges::WithoutPrivileges() : effective_(exchange_effective(kIgnoresModes, 0)) {}
WithoutPrivileges::~WithoutPrivileges() { exchange_effective(0, effective_ & kIgnoresModes); }

// Whoever writes beyond the limit is told by a signal too, which would end the process.
SmallFiles::SmallFiles(uint64_t bytes) : signal_(std::signal(SIGXFSZ, SIG_IGN)) {
  rlimit limit{};
  ::getrlimit(RLIMIT_FSIZE, &limit);
  before_ = limit.rlim_cur;
  limit_files(bytes);
}
SmallFiles::~SmallFiles() {
  limit_files(before_);
  std::signal(SIGXFSZ, signal_);
}

}  // namespace fullbore::cuda
