#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "fullbore/monitor/nvml_library.h"
#include "fullbore/monitor/sensor_sources.h"

namespace fullbore {
namespace {

constexpr double kBytesPerMib = 1 << 20;
constexpr unsigned kMostDevices = 16;
constexpr int kCore = 0;        // NVML_TEMPERATURE_GPU
constexpr int kProcessors = 1;  // NVML_CLOCK_SM
// Slowed down by a limit of power (0x4), by the hardware (0x8), by heat (0x20, 0x40) or by a power brake (0x80); not by
// idleness or by a setting.
constexpr unsigned long long kThrottled = 0xEC;

/// NVIDIA's devices, as nvidia-smi names their figures.
class NvmlSensors : public SensorSource {
 public:
  explicit NvmlSensors(const SensorOptions& options) {
    Result<std::unique_ptr<NvmlLibrary>> opened = NvmlLibrary::open(options.nvml);
    if (!opened.ok()) {
      missing_ = opened.error();
      return;
    }
    library_ = std::move(opened).value();
    unsigned count = 0;
    if (const int code = library_->device_count(&count); code != NvmlLibrary::kSuccess)
      missing_ = library_->error_text(code);
    else if (count == 0)
      missing_ = "NVIDIA's driver knows no device";
    energies_.resize(std::min(count, kMostDevices));
  }

  void read(double, std::vector<SensorReading>& readings) override {
    if (energies_.empty()) readings.push_back({"gpu", "", kUnknown, missing_});
    for (unsigned i = 0; i < energies_.size(); ++i) read(i, readings);
  }

 private:
  static constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  using Device = NvmlLibrary::Device;

  void read(unsigned index, std::vector<SensorReading>& readings) {
    const NvmlLibrary& nvml = *library_;
    Device device = nullptr;
    const int found = nvml.device(index, &device);
    // One figure: what a call gives, times a factor.
    const auto add = [&](const char* name, const char* unit, auto* call, auto value,
                         const auto& ask, const auto& figure) {
      SensorReading reading{fmt::format("gpu{}.{}", index, name), unit};
      const int code = found != NvmlLibrary::kSuccess ? found
                       : call == nullptr              ? NvmlLibrary::kNotSupported
                                                      : ask(&value);
      if (code == NvmlLibrary::kSuccess)
        reading.value = static_cast<double>(figure(value));
      else
        reading.missing = nvml.error_text(code);
      readings.push_back(std::move(reading));
    };
    const auto same = [](auto value) { return value; };
    const auto thousandths = [](auto value) { return static_cast<double>(value) / 1000; };
    add(
        "utilization.gpu", "%", nvml.utilization, NvmlLibrary::Utilization{},
        [&](auto* value) { return nvml.utilization(device, value); },
        [](const auto& value) { return std::min(value.gpu, 100U); });
    add(
        "memory.used", "MiB", nvml.memory, NvmlLibrary::Memory{},
        [&](auto* value) { return nvml.memory(device, value); },
        [](const auto& value) { return static_cast<double>(value.used) / kBytesPerMib; });
    add(
        "memory.total", "MiB", nvml.memory, NvmlLibrary::Memory{},
        [&](auto* value) { return nvml.memory(device, value); },
        [](const auto& value) { return static_cast<double>(value.total) / kBytesPerMib; });
    add(
        "temperature.gpu", "C", nvml.temperature, 0U,
        [&](auto* value) { return nvml.temperature(device, kCore, value); }, same);
    add(
        "power.draw", "W", nvml.power, 0U, [&](auto* value) { return nvml.power(device, value); },
        thousandths);
    add(
        "energy", "J", nvml.energy, 0ULL, [&](auto* value) { return nvml.energy(device, value); },
        [&](auto value) {
          // It counts from the start of the driver, and begins anew where that is loaded anew.
          energies_[index].add(static_cast<int64_t>(value & ~(1ULL << 63)), 0);
          return thousandths(energies_[index].total());
        });
    add(
        "clocks.sm", "MHz", nvml.clock, 0U,
        [&](auto* value) { return nvml.clock(device, kProcessors, value); }, same);
    add(
        "throttled", "", nvml.throttle_reasons, 0ULL,
        [&](auto* value) { return nvml.throttle_reasons(device, value); },
        [](auto value) { return (value & kThrottled) != 0 ? 1 : 0; });
    add(
        "processes", "", nvml.processes, 0U,
        [&](auto* value) {
          // No room is offered for a list: the call then tells how many there are.
          const int code = nvml.processes(device, value, nullptr);
          return code == NvmlLibrary::kInsufficientSize ? NvmlLibrary::kSuccess : code;
        },
        same);
  }

  std::unique_ptr<NvmlLibrary> library_;
  std::string missing_;
  std::vector<WrappingCounter> energies_;  ///< one for each device
};

}  // namespace

std::unique_ptr<SensorSource> nvml_sensors(const SensorOptions& options) {
  return std::make_unique<NvmlSensors>(options);
}

}  // namespace fullbore
