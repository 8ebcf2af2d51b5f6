#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "fullbore/device/device.h"
#include "fullbore/plan/plan.h"

namespace fullbore {

/// What a device of this machine can do at most, as measured.
struct Machine : MeasuredPeaks {
  std::string processor;  ///< as the system names it
  int workers = 1;
};

/// Measures all of it (Device::measure_peaks).
Machine measure_machine(Device& device, const PeakMemory& memory = {});

/// The highest of both: what has been reached once can be reached.
Machine higher_peaks(Machine machine, const Machine& other);

/// The figures kept in the cache folder for this hardware and number of workers, if there are any; those
/// of a busy machine for an hour. Measures nothing.
std::optional<Machine> kept_machine(const DeviceFacts& device);

/// Those, or a measurement that is then kept. A cache that cannot be read or written costs the measurement
/// and nothing else.
Machine known_machine(Device& device, const PeakMemory& memory = {});

/// A machine as the cache keeps it, JSON. Nothing where a field is missing or of another type, or a peak is not positive.
std::optional<Machine> parse_machine(std::string_view json);

/// Measures afresh. The cache keeps, and this returns, the highest peaks ever seen.
Machine refresh_machine(Device& device, const PeakMemory& memory = {});

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
