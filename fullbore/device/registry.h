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
  std::string name;     ///< "oneDNN"
  std::string version;  ///< as loaded, "2.6.3"
  std::string purpose;
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
};

/// A static variable of this type in a device's room makes the device known. Names must be unique.
struct RegisteredDevice {
  explicit RegisteredDevice(const DeviceKind& kind);
};

/// By name; a device of which a machine has several takes an ordinal, "cuda:1". UsageError with the nearest name for one
/// that is not registered.
std::shared_ptr<Device> open_device(const std::string& name, int threads = 0);

/// Bytes that are free in the device's own memory; nothing where it works in the host's, or is not registered. What
/// open_device() throws.
std::optional<int64_t> own_memory_bytes(const std::string& name);

std::vector<DeviceKind> device_kinds();   ///< by name
std::vector<std::string> device_names();  ///< sorted
/// Of all devices that this build has.
std::vector<Library> device_libraries();

}  // namespace fullbore
