#include "fullbore/monitor/card_settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>

#include "fullbore/base/excerpt.h"
#include "fullbore/monitor/nvml_library.h"

namespace fullbore {
namespace {

constexpr unsigned kMostDevices = 16;
constexpr int kMultiprocessors = 1;  // NVML_CLOCK_SM
constexpr int kMemory = 2;           // NVML_CLOCK_MEM

struct Reason {
  unsigned long long bit;
  std::string_view text;
};
// Source: NVIDIA, NVML API Reference Guide, "NvmlClocksEventReasons".
constexpr Reason kReasons[] = {
    {0x1, "idle"},
    {0x2, "clocks set for applications"},
    {0x4, "power limit"},
    {0x8, "hardware slowdown"},
    {0x10, "clocks shared with other cards"},
    {0x20, "heat (driver)"},
    {0x40, "heat (hardware)"},
    {0x80, "power brake"},
    {0x100, "clocks set for a display"},
};

std::vector<std::string> reasons_of(unsigned long long bits) {
  std::vector<std::string> reasons;
  for (const Reason& each : kReasons)
    if ((bits & each.bit) != 0) reasons.emplace_back(each.text);
  return reasons;
}

/// What a call gives, if the library has it and the device answers.
template <class Value, class Function, class... Arguments>
std::optional<Value> ask(Function* function, Arguments... arguments) {
  Value value{};
  if (function == nullptr || function(arguments..., &value) != NvmlLibrary::kSuccess)
    return std::nullopt;
  return value;
}

std::string name_of(const NvmlLibrary& nvml, NvmlLibrary::Device device) {
  char name[96] = {};
  if (nvml.device_name == nullptr ||
      nvml.device_name(device, name, static_cast<unsigned>(sizeof name)) != NvmlLibrary::kSuccess)
    return "";
  name[sizeof name - 1] = '\0';
  return excerpt(name, sizeof name);
}

CardSettings settings_of(const NvmlLibrary& nvml, unsigned index, NvmlLibrary::Device device) {
  CardSettings settings;
  settings.index = index;
  settings.name = name_of(nvml, device);
  settings.clock_mhz = ask<unsigned>(nvml.clock, device, kMultiprocessors);
  settings.most_clock_mhz = ask<unsigned>(nvml.most_clock, device, kMultiprocessors);
  settings.memory_mhz = ask<unsigned>(nvml.clock, device, kMemory);
  settings.most_memory_mhz = ask<unsigned>(nvml.most_clock, device, kMemory);
  if (const auto mode = ask<int>(nvml.persistence, device)) settings.persistence = *mode != 0;
  if (const auto limit = ask<unsigned>(nvml.power_limit, device))
    settings.limit_watts = *limit / 1e3;
  unsigned least = 0;
  if (const auto most = ask<unsigned>(nvml.power_limits, device, &least))
    settings.most_watts = *most / 1e3;
  if (const auto bits = ask<unsigned long long>(nvml.throttle_reasons, device))
    settings.held_by = reasons_of(*bits);
  return settings;
}

}  // namespace

std::vector<std::string> CardSettings::texts() const {
  std::vector<std::string> texts;
  const auto clock = [&](const char* what, std::optional<unsigned> now,
                         std::optional<unsigned> most) {
    if (now)
      texts.push_back(most ? fmt::format("{} {} of {} MHz", what, *now, *most)
                           : fmt::format("{} {} MHz", what, *now));
  };
  clock("clocks", clock_mhz, most_clock_mhz);
  clock("memory clocks", memory_mhz, most_memory_mhz);
  if (held_by)
    texts.push_back(held_by->empty()
                        ? "clocks held down by nothing"
                        : fmt::format("clocks held down by {}", fmt::join(*held_by, ", ")));
  if (persistence) texts.push_back(fmt::format("persistence mode {}", *persistence ? "on" : "off"));
  if (limit_watts)
    texts.push_back(most_watts
                        ? fmt::format("power limit {:.0f} of {:.0f} W", *limit_watts, *most_watts)
                        : fmt::format("power limit {:.0f} W", *limit_watts));
  return texts;
}

std::vector<std::string> CardSettings::commands() const {
  std::vector<std::string> commands;
  const auto add = [&](const std::string& arguments, const std::string& effect) {
    commands.push_back(fmt::format("sudo nvidia-smi -i {} {}: {}", index, arguments, effect));
  };
  if (persistence == false)
    add("-pm 1", "the driver stays loaded between runs, which then start sooner");
  if (most_clock_mhz)
    add(fmt::format("-lgc {}", *most_clock_mhz),
        "clocks stay at their highest, for steady measurements (-rgc undoes it)");
  if (limit_watts && most_watts && *limit_watts < *most_watts)
    add(fmt::format("-pl {:.0f}", *most_watts), "the highest power limit");
  return commands;
}

Result<std::vector<CardSettings>> read_card_settings(const SensorOptions& options) {
  Result<std::unique_ptr<NvmlLibrary>> opened = NvmlLibrary::open(options.nvml);
  if (!opened.ok()) return Failure{opened.error()};
  const std::unique_ptr<NvmlLibrary> nvml = std::move(opened).value();
  unsigned count = 0;
  if (const int code = nvml->device_count(&count); code != NvmlLibrary::kSuccess)
    return Failure{nvml->error_text(code)};
  std::vector<CardSettings> all;
  for (unsigned i = 0; i < std::min(count, kMostDevices); ++i) {
    NvmlLibrary::Device device = nullptr;
    if (const int code = nvml->device(i, &device); code != NvmlLibrary::kSuccess)
      return Failure{fmt::format("gpu{}: {}", i, nvml->error_text(code))};
    all.push_back(settings_of(*nvml, i, device));
  }
  return all;
}

}  // namespace fullbore
