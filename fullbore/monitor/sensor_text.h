#pragma once
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace fullbore {

/// Readers of the small texts of /proc and /sys: of any bytes they make finite numbers that are not negative (a
/// temperature may be), or nothing. Numbers are decimal, as the kernel writes them, below 2^63; nothing may follow but
/// white space.
/// Source: Linux, Documentation/filesystems/proc.rst, accounting/psi.rst, admin-guide/cgroup-v2.rst, hwmon/sysfs-interface.rst.

/// "123\n"
std::optional<int64_t> parse_count(std::string_view text);
/// "-5000\n": thousandths of a degree.
std::optional<double> parse_celsius(std::string_view text);
/// The number behind `key` of lines "MemTotal:    16384 kB" or "throttled_usec 12", in the unit of the file.
std::optional<int64_t> parse_keyed(std::string_view text, std::string_view key);

/// Shares of time in which some, or all, tasks waited for a resource, averaged over 10 s, in [0, 100].
struct Pressure {
  double some = 0;
  std::optional<double> full = {};
};
/// "some avg10=0.12 avg60=... total=123\nfull avg10=..."
std::optional<Pressure> parse_pressure(std::string_view text);

/// Ticks of a processor since the machine started.
struct ProcessorTicks {
  int64_t busy = 0;
  int64_t total = 0;  ///< idle and waiting for disks included
};
/// /proc/stat: of all processors together, of each by its number, and how many threads run or could.
struct ProcessorTimes {
  struct Each {
    int64_t number;
    ProcessorTicks ticks;
  };
  ProcessorTicks all;
  std::vector<Each> each;
  int64_t runnable = 0;
};
std::optional<ProcessorTimes> parse_processor_times(std::string_view text);

/// /proc/self/stat: ticks of processors that the process has used, and its threads.
struct ProcessTimes {
  int64_t ticks = 0;
  int64_t threads = 0;
};
std::optional<ProcessTimes> parse_process_times(std::string_view text);

}  // namespace fullbore
