#pragma once
#include <memory>
#include <string>

#include "fullbore/base/result.h"

namespace fullbore {

/// The few calls of NVIDIA's management library (NVML) that read sensors and settings, loaded from its driver where it is there. The
/// declarations follow its published interface; no header of it is needed, and nothing is linked.
/// Source: NVIDIA, NVML API Reference Guide, "Device Queries".
class NvmlLibrary {
 public:
  using Device = void*;
  struct Utilization {
    unsigned gpu, memory;  ///< percent of the last sample period
  };
  struct Memory {
    unsigned long long total, free, used;  ///< bytes
  };
  static constexpr int kSuccess = 0;
  static constexpr int kNotSupported = 3;
  static constexpr int kInsufficientSize = 7;

  /// Loads and initializes it. Failure: it is not there, or refuses, in its own words.
  static Result<std::unique_ptr<NvmlLibrary>> open(const std::string& path);
  ~NvmlLibrary();
  NvmlLibrary(const NvmlLibrary&) = delete;
  NvmlLibrary& operator=(const NvmlLibrary&) = delete;

  std::string error_text(int code) const;

  // Null where the library is too old to have it.
  int (*device_count)(unsigned*) = nullptr;
  int (*device)(unsigned, Device*) = nullptr;
  int (*utilization)(Device, Utilization*) = nullptr;
  int (*memory)(Device, Memory*) = nullptr;
  int (*temperature)(Device, int sensor, unsigned* celsius) = nullptr;
  int (*power)(Device, unsigned* milliwatts) = nullptr;
  int (*energy)(Device, unsigned long long* millijoules) = nullptr;
  int (*clock)(Device, int type, unsigned* mhz) = nullptr;
  int (*most_clock)(Device, int type, unsigned* mhz) = nullptr;
  int (*device_name)(Device, char* text, unsigned bytes) = nullptr;
  int (*persistence)(Device, int* is_on) = nullptr;
  int (*power_limit)(Device, unsigned* milliwatts) = nullptr;  ///< in force
  int (*power_limits)(Device, unsigned* least, unsigned* most) = nullptr;
  int (*throttle_reasons)(Device, unsigned long long* bits) = nullptr;
  int (*processes)(Device, unsigned* count, void* list) = nullptr;

 private:
  explicit NvmlLibrary(void* library) : library_(library) {}
  template <typename Function>
  void find(const char* name, Function& function) const;

  void* library_;
  int (*initialize_)() = nullptr;
  int (*shut_down_)() = nullptr;
  const char* (*error_string_)(int) = nullptr;
  bool initialized_ = false;
};

}  // namespace fullbore
