#include "fullbore/device/automatic_device.h"

#include <fmt/format.h>

#include <algorithm>

#include "fullbore/base/error.h"
#include "fullbore/device/registry.h"

namespace fullbore {

AutomaticDevice automatic_device() {
  constexpr const char* kPreferred = "cuda";
  const std::vector<DeviceKind> kinds = device_kinds();
  const auto found = std::ranges::find(kinds, kPreferred, &DeviceKind::name);
  if (found == kinds.end()) return {"cpu", "this build knows no other that computes"};
  try {
    return {kPreferred, found->open(kPreferred, 1)->facts().hardware};
  } catch (const Error& error) {
    return {"cpu", error.what()};
  }
}

std::string resolved_device(const std::string& name) {
  return name == kAutomatic ? automatic_device().name : name;
}

}  // namespace fullbore
