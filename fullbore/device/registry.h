#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fullbore/device/device.h"

namespace fullbore {

/// A third-party library that does work for a device.
struct Library {
  std::string name;     ///< "LLVM"
  std::string version;  ///< as loaded, "19.1.7"; "" where it is not
  std::string purpose;
  std::string problem =
      {};  ///< why it is not usable; "" if it is. The device does without it then.
};

/// A kind of device, as its own room registers it.
struct DeviceKind {
  std::string_view name;     ///< as people type it: "cpu"
  std::string_view summary;  ///< for lists
  /// `name`: as it was typed, with an ordinal perhaps; `threads`: of the host that work for it, 0: as many as there are
  /// processors. UsageError or MemoryError where there is no such device.
  std::shared_ptr<Device> (*open)(const std::string& name, int threads) = nullptr;
  std::vector<Library> (*libraries)() = nullptr;  ///< null: none
  /// Bytes that are free in the memory of its own of the device called so, as open() takes the name. Null: it works in
  /// the host's.
  int64_t (*own_memory_bytes)(const std::string& name) = nullptr;
  /// As `open`, with moments in the host's memory (DeviceFacts). Null: that is refused.
  std::shared_ptr<Device> (*open_with_moments_in_host)(const std::string& name,
                                                       int threads) = nullptr;
};

/// A static variable of this type in a device's room makes the device known. Names must be unique.
struct RegisteredDevice {
  explicit RegisteredDevice(const DeviceKind& kind);
};

/// By name; a device of which a machine has several takes an ordinal, "cuda:1". UsageError with the nearest name for one
/// that is not registered. `moments_in_host`: the optimiser's moments are kept in pinned memory of the host, and copied to
/// the device and back in each step; UsageError for a device that has no other memory.
std::shared_ptr<Device> open_device(const std::string& name, int threads = 0,
                                    bool moments_in_host = false);

/// Bytes that are free in the device's own memory; nothing where it works in the host's, or is not registered. What
/// open_device() throws.
std::optional<int64_t> own_memory_bytes(const std::string& name);

std::vector<DeviceKind> device_kinds();   ///< by name
std::vector<std::string> device_names();  ///< sorted
/// Of all devices that this build has.
std::vector<Library> device_libraries();
/// Is it usable, of the device called so, as open_device() takes the name?
bool device_has_library(const std::string& device, std::string_view library);

}  // namespace fullbore
