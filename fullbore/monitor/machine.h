#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "fullbore/base/threads.h"
#include "fullbore/plan/plan.h"

namespace fullbore {

/// What a team of threads can do at most on this machine: the yardstick of every utilisation and
/// roofline that we print.
struct Machine {
  std::string processor;  ///< as the system names it
  int workers = 1;
  MachinePeaks peaks;
  std::string fp32_method;   ///< "avx512f fma"
  std::string bf16_method;   ///< "avx512 bf16 dot", or why it is not native
  bool native_bf16 = false;  ///< else the bf16 peak is the fp32 one: products are widened
  bool busy = false;         ///< other processes were in the way: the bandwidth may be too low
  bool in_caches =
      false;  ///< too little memory for the triad's arrays: the bandwidth may be too high
};

/// No bound of the memory that measuring takes: 288 MiB at most.
inline constexpr int64_t kAnyMemory = int64_t{1} << 62;

/// What the arrays of the triad may lie in.
struct MeasuringMemory {
  int64_t bytes = kAnyMemory;  ///< that may be taken from the system
  std::span<char> lent = {};   ///< or this, whose contents are lost; aligned to 64 bytes
};

/// Measures on all workers at once: multiply-adds out of registers, and the triad a = b + s c over arrays larger
/// than the caches, counting three streams (McCalpin 1995, STREAM). Each in rounds with pauses, until eight in a row
/// have not raised the best: other processes can only slow it down. About a second on a machine at rest.
/// Nothing is taken from the system where what is lent is as large as it.
Machine measure_machine(Team& team, const MeasuringMemory& memory = {});

/// The highest of both: what has been reached once can be reached.
Machine higher_peaks(Machine machine, const Machine& other);

/// The figures kept in the cache folder for this processor and number of workers, if there are any; those
/// of a busy machine for an hour. Measures nothing.
std::optional<Machine> kept_machine(int workers);

/// Those, or a measurement that is then kept. A cache that cannot be read or written costs the measurement
/// and nothing else.
Machine known_machine(Team& team, const MeasuringMemory& memory = {});

/// A machine as the cache keeps it, JSON. Nothing where a field is missing or of another type, or a peak is not positive.
std::optional<Machine> parse_machine(std::string_view json);

/// Measures afresh. The cache keeps, and this returns, the highest peaks ever seen.
Machine refresh_machine(Team& team, const MeasuringMemory& memory = {});

/// Peaks that a report may be made with. `share(peaks)` is the part of them that something measured has reached: where
/// it is above 1 the peaks were measured too low, and are measured again by `measure`, three times at most, the
/// highest kept. If it is above 1 even then, reports say so (kAboveRoofline).
Machine settle_peaks(Machine machine, const std::function<double(const MachinePeaks&)>& share,
                     const std::function<Machine()>& measure);

/// What reports add where a step is faster than its roofline.
inline constexpr const char* kAboveRoofline =
    "More than 100 % is an error of the measurement: peaks were measured too low, or\n"
    "operands came from caches, which the roofline counts as memory.\n";

}  // namespace fullbore
