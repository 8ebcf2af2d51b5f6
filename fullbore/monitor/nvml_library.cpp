#include "fullbore/monitor/nvml_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include "fullbore/base/excerpt.h"

namespace fullbore {

template <typename Function>
void NvmlLibrary::find(const char* name, Function& function) const {
  if (function == nullptr) function = reinterpret_cast<Function>(::dlsym(library_, name));
}

Result<std::unique_ptr<NvmlLibrary>> NvmlLibrary::open(const std::string& path) {
  void* const loaded = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (loaded == nullptr) {
    const char* const reason = ::dlerror();
    return Failure{fmt::format("no driver of NVIDIA devices: {}",
                               reason == nullptr ? path : excerpt(reason, 200))};
  }
  std::unique_ptr<NvmlLibrary> library(new NvmlLibrary(loaded));
  library->find("nvmlInit_v2", library->initialize_);
  library->find("nvmlShutdown", library->shut_down_);
  library->find("nvmlErrorString", library->error_string_);
  library->find("nvmlDeviceGetCount_v2", library->device_count);
  library->find("nvmlDeviceGetHandleByIndex_v2", library->device);
  library->find("nvmlDeviceGetUtilizationRates", library->utilization);
  library->find("nvmlDeviceGetMemoryInfo", library->memory);
  library->find("nvmlDeviceGetTemperature", library->temperature);
  library->find("nvmlDeviceGetPowerUsage", library->power);
  library->find("nvmlDeviceGetTotalEnergyConsumption", library->energy);
  library->find("nvmlDeviceGetClockInfo", library->clock);
  library->find("nvmlDeviceGetMaxClockInfo", library->most_clock);
  library->find("nvmlDeviceGetName", library->device_name);
  library->find("nvmlDeviceGetPersistenceMode", library->persistence);
  library->find("nvmlDeviceGetEnforcedPowerLimit", library->power_limit);
  library->find("nvmlDeviceGetPowerManagementLimitConstraints", library->power_limits);
  // Renamed in release 535.
  library->find("nvmlDeviceGetCurrentClocksEventReasons", library->throttle_reasons);
  library->find("nvmlDeviceGetCurrentClocksThrottleReasons", library->throttle_reasons);
  // The versions differ in what they list, which is not asked for.
  library->find("nvmlDeviceGetComputeRunningProcesses_v3", library->processes);
  library->find("nvmlDeviceGetComputeRunningProcesses_v2", library->processes);
  library->find("nvmlDeviceGetComputeRunningProcesses", library->processes);
  if (library->initialize_ == nullptr || library->device_count == nullptr ||
      library->device == nullptr)
    return Failure{path + " is no NVML of release 319 or later"};
  if (const int code = library->initialize_(); code != kSuccess)
    return Failure{fmt::format("{} refuses: {}", path, library->error_text(code))};
  library->initialized_ = true;
  return library;
}

NvmlLibrary::~NvmlLibrary() {
  if (initialized_ && shut_down_ != nullptr) shut_down_();
  ::dlclose(library_);
}

std::string NvmlLibrary::error_text(int code) const {
  const char* const text = error_string_ == nullptr ? nullptr : error_string_(code);
  return text == nullptr ? fmt::format("NVML error {}", code) : excerpt(text, 200);
}

}  // namespace fullbore
