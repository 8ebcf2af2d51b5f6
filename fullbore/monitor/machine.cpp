#include "fullbore/monitor/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "fullbore/base/cache_directory.h"
#include "fullbore/base/files.h"
#include "fullbore/base/hash.h"
#include "fullbore/base/json.h"
#include "fullbore/base/processor.h"

namespace fullbore {
namespace {

// What was measured while the machine was busy serves the runs of so long: each would meet the same.
constexpr std::chrono::hours kBusyFor{1};

// Counts up when peaks are measured in another way: what is kept of the old way is not read.
constexpr int kMethod = 3;

std::string cache_path(const std::string& processor, int workers) {
  const std::string_view level = processor_level_name(this_processor().level);
  return fmt::format(
      "{}/machine-{}.json", cache_directory(),
      hash_hex(hash_text(fmt::format("{}|{}|{}|{}", kMethod, processor, level, workers))));
}

std::optional<Machine> load(const std::string& processor, int workers) {
  const Result<std::string> text = read_file(cache_path(processor, workers));
  if (!text) return std::nullopt;
  std::optional<Machine> machine = parse_machine(text.value());
  const bool ours = machine && machine->processor == processor && machine->workers == workers;
  return ours ? machine : std::nullopt;
}

void save(const Machine& machine) {
  const nlohmann::ordered_json json = {
      {"processor", machine.processor},
      {"workers", machine.workers},
      {"fp32_flops", machine.peaks.fp32_flops},
      {"bf16_flops", machine.peaks.bf16_flops},
      {"tf32_flops", machine.peaks.tf32_flops},
      {"bytes_per_second", machine.peaks.bytes_per_second},
      {"host_bytes_per_second", machine.peaks.host_bytes_per_second},
      {"fp32_method", machine.fp32_method},
      {"bf16_method", machine.bf16_method},
      {"tf32_method", machine.tf32_method},
      {"busy", machine.busy},
      {"native_bf16", machine.native_bf16},
  };
  // A read-only cache is no failure of the run; `fullbore doctor` tells of it.
  (void)write_file_atomically(cache_path(machine.processor, machine.workers), json.dump(2) + '\n');
}

bool is_recent(const std::string& path) {
  std::error_code error;
  const auto written = std::filesystem::last_write_time(path, error);
  return !error && std::filesystem::file_time_type::clock::now() - written < kBusyFor;
}

}  // namespace

Machine measure_machine(Device& device, const PeakMemory& memory) {
  const DeviceFacts facts = device.facts();
  Machine machine;
  static_cast<MeasuredPeaks&>(machine) = device.measure_peaks(memory);
  machine.processor = facts.hardware;
  machine.workers = facts.workers;
  return machine;
}

std::optional<Machine> parse_machine(std::string_view text) {
  const Result<nlohmann::json> parsed = parse_json(text);
  if (!parsed.ok() || !parsed.value().is_object()) return std::nullopt;
  const nlohmann::json& json = parsed.value();
  Machine machine;
  try {
    machine.processor = json.at("processor").get<std::string>();
    machine.workers = json.at("workers").get<int>();
    machine.peaks.fp32_flops = json.at("fp32_flops").get<double>();
    machine.peaks.bf16_flops = json.at("bf16_flops").get<double>();
    machine.peaks.tf32_flops = json.at("tf32_flops").get<double>();
    machine.peaks.bytes_per_second = json.at("bytes_per_second").get<double>();
    machine.peaks.host_bytes_per_second = json.value("host_bytes_per_second", 0.0);
    machine.fp32_method = json.at("fp32_method").get<std::string>();
    machine.bf16_method = json.at("bf16_method").get<std::string>();
    machine.tf32_method = json.at("tf32_method").get<std::string>();
    machine.native_bf16 = json.at("native_bf16").get<bool>();
    machine.busy = json.value("busy", false);
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;  // written by another version: measured again
  }
  const bool sound = machine.peaks.fp32_flops > 0 && machine.peaks.bf16_flops > 0 &&
                     machine.peaks.bytes_per_second > 0 && machine.peaks.tf32_flops >= 0;
  return sound ? std::optional(machine) : std::nullopt;
}

Machine higher_peaks(Machine machine, const Machine& other) {
  MachinePeaks& peaks = machine.peaks;
  peaks.fp32_flops = std::max(peaks.fp32_flops, other.peaks.fp32_flops);
  peaks.bf16_flops = std::max(peaks.bf16_flops, other.peaks.bf16_flops);
  peaks.tf32_flops = std::max(peaks.tf32_flops, other.peaks.tf32_flops);
  peaks.host_bytes_per_second =
      std::max(peaks.host_bytes_per_second, other.peaks.host_bytes_per_second);
  if (!other.in_caches)
    peaks.bytes_per_second = machine.in_caches
                                 ? other.peaks.bytes_per_second
                                 : std::max(peaks.bytes_per_second, other.peaks.bytes_per_second);
  machine.in_caches = machine.in_caches && other.in_caches;
  machine.busy = machine.busy && other.busy;
  return machine;
}

std::optional<Machine> kept_machine(const DeviceFacts& device) {
  std::optional<Machine> kept = load(device.hardware, device.workers);
  if (kept && kept->busy && !is_recent(cache_path(device.hardware, device.workers))) kept.reset();
  return kept;
}

Machine known_machine(Device& device, const PeakMemory& memory) {
  const std::optional<Machine> kept = kept_machine(device.facts());
  return kept ? *kept : refresh_machine(device, memory);
}

Machine refresh_machine(Device& device, const PeakMemory& memory) {
  Machine machine = measure_machine(device, memory);
  if (const std::optional<Machine> kept = load(machine.processor, machine.workers))
    machine = higher_peaks(machine, *kept);
  if (!machine.in_caches) save(machine);  // a bandwidth of caches is nobody else's
  return machine;
}

Machine settle_peaks(Machine machine, const std::function<double(const MachinePeaks&)>& share,
                     const std::function<Machine()>& measure) {
  constexpr int kMostTries = 3;
  for (int i = 0; i < kMostTries && share(machine.peaks) > 1; ++i)
    machine = higher_peaks(machine, measure());
  return machine;
}

}  // namespace fullbore
