#pragma once
#include <string>

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
  bool busy = false;         ///< other processes were in the way: the bandwidth is too low
};

/// Measures for about half a second, on all workers at once: multiply-adds out of registers, and
/// the triad a = b + s c over arrays larger than the caches, counting three streams (McCalpin 1995,
/// STREAM). The best of several repeats counts, since other processes can only slow it down.
Machine measure_machine(Team& team);

/// The figures kept in the cache folder for this processor and number of workers, or a measurement
/// that is then kept: for an hour, if the machine was busy. A cache that cannot be read or written
/// costs the measurement and nothing else.
Machine known_machine(Team& team);

/// Measures afresh and keeps the result, unless the machine was busy and something better is kept.
Machine refresh_machine(Team& team);

}  // namespace fullbore
