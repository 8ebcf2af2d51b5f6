#include "fullbore/device/registry.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "fullbore/base/check.h"
#include "fullbore/base/error.h"
#include "fullbore/base/text.h"
#include "fullbore/device/automatic_device.h"

namespace fullbore {
namespace {

// Static variables of other files fill it, in whatever order they are made.
std::map<std::string, DeviceKind, std::less<>>& kinds() {
  static std::map<std::string, DeviceKind, std::less<>> all;
  return all;
}

/// Null: there is none.
const DeviceKind* kind_of(std::string_view name) {
  const auto found = kinds().find(name.substr(0, name.find(':')));
  return found == kinds().end() ? nullptr : &found->second;
}

}  // namespace

RegisteredDevice::RegisteredDevice(const DeviceKind& kind) {
  FB_CHECK(kinds().emplace(kind.name, kind).second, "two devices are called '{}'", kind.name);
}

std::shared_ptr<Device> open_device(const std::string& name, int threads, bool moments_in_host) {
  if (name == kAutomatic) return open_device(automatic_device().name, threads, moments_in_host);
  const DeviceKind* const kind = kind_of(name);
  if (kind == nullptr)
    throw UsageError(fmt::format("no device '{}'; there are {}.{}", name,
                                 fmt::join(device_names(), ", "),
                                 did_you_mean(name, device_names())));
  if (!moments_in_host) return kind->open(name, threads);
  if (kind->open_with_moments_in_host == nullptr)
    throw UsageError(
        fmt::format("engine.offload=optimizer: moments are in host memory already on the device "
                    "'{}'; engine.offload=none, or engine.device=cuda",
                    name));
  return kind->open_with_moments_in_host(name, threads);
}

std::optional<int64_t> own_memory_bytes(const std::string& name) {
  if (name == kAutomatic) return own_memory_bytes(automatic_device().name);
  const DeviceKind* const kind = kind_of(name);
  if (kind == nullptr || kind->own_memory_bytes == nullptr) return std::nullopt;
  return kind->own_memory_bytes(name);
}

std::vector<DeviceKind> device_kinds() {
  std::vector<DeviceKind> all;
  for (const auto& [name, kind] : kinds()) all.push_back(kind);
  return all;
}

std::vector<std::string> device_names() {
  std::vector<std::string> names;
  for (const auto& [name, kind] : kinds()) names.push_back(name);
  return names;
}

std::vector<Library> device_libraries() {
  std::vector<Library> all;
  for (const auto& [name, kind] : kinds())
    if (kind.libraries)
      for (Library& library : kind.libraries()) all.push_back(std::move(library));
  return all;
}

bool device_has_library(const std::string& device, std::string_view library) {
  if (device == kAutomatic) return device_has_library(automatic_device().name, library);
  const DeviceKind* const kind = kind_of(device);
  if (kind == nullptr || kind->libraries == nullptr) return false;
  const std::vector<Library> all = kind->libraries();
  return std::ranges::any_of(
      all, [&](const Library& each) { return each.name == library && each.problem.empty(); });
}

}  // namespace fullbore
