#include "fullbore/monitor/process.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "fullbore/base/control_group.h"

namespace fullbore {
std::chrono::steady_clock::time_point process_start() {
  const auto now = std::chrono::steady_clock::now();
  timespec since_boot{};
  if (::clock_gettime(CLOCK_BOOTTIME, &since_boot) != 0) return now;
  std::string text;
  std::getline(std::ifstream("/proc/self/stat"), text);
  // The name in parentheses may hold anything; the 20th field behind it is the start in ticks since boot.
  std::istringstream fields(text.substr(std::min(text.size(), text.rfind(')') + 1)));
  std::string skipped;
  for (int i = 0; i < 19; ++i) fields >> skipped;
  int64_t ticks = 0;
  if (!(fields >> ticks)) return now;
  const std::chrono::duration<double> age(
      static_cast<double>(since_boot.tv_sec) + 1e-9 * static_cast<double>(since_boot.tv_nsec) -
      static_cast<double>(ticks) / static_cast<double>(::sysconf(_SC_CLK_TCK)));
  return now - std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                   std::max(age, std::chrono::duration<double>(0)));
}

int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  int64_t total_pages = 0;
  int64_t resident_pages = 0;
  if (!(file >> total_pages >> resident_pages)) return 0;
  return resident_pages * sysconf(_SC_PAGESIZE);
}

int64_t peak_resident_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<int64_t>(usage.ru_maxrss) * 1024;
}

void forget_peak_resident_bytes() { std::ofstream("/proc/self/clear_refs") << "5"; }

int online_processors() { return static_cast<int>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN))); }

int64_t free_disk_bytes(const std::string& folder) {
  std::error_code error;
  std::filesystem::path path = std::filesystem::absolute(folder, error);
  while (!error && !std::filesystem::exists(path, error) && path.has_relative_path())
    path = path.parent_path();
  const std::filesystem::space_info space = std::filesystem::space(path, error);
  return error ? -1 : static_cast<int64_t>(space.available);
}

int64_t memory_limit_bytes(const std::string& root) {
  const int64_t machine = sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
  int64_t limit = std::min(machine, control_group_limits(root).memory_bytes);
  for (const auto resource : {RLIMIT_AS, RLIMIT_DATA}) {
    rlimit own{};
    if (getrlimit(resource, &own) == 0 && own.rlim_cur < static_cast<rlim_t>(limit))
      limit = static_cast<int64_t>(own.rlim_cur);
  }
  return limit;
}

}  // namespace fullbore
