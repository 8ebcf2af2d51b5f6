#include "fullbore/device/registry.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>

#include "fullbore/base/check.h"
#include "fullbore/base/error.h"
#include "fullbore/base/text.h"

namespace fullbore {
namespace {

// Static variables of other files fill it, in whatever order they are made.
std::map<std::string, DeviceKind, std::less<>>& kinds() {
  static std::map<std::string, DeviceKind, std::less<>> all;
  return all;
}

}  // namespace

RegisteredDevice::RegisteredDevice(const DeviceKind& kind) {
  FB_CHECK(kinds().emplace(kind.name, kind).second, "two devices are called '{}'", kind.name);
}

std::shared_ptr<Device> open_device(const std::string& name, int threads) {
  const auto found = kinds().find(std::string_view(name).substr(0, name.find(':')));
  if (found == kinds().end())
    throw UsageError(fmt::format("no device '{}'; there are {}.{}", name,
                                 fmt::join(device_names(), ", "),
                                 did_you_mean(name, device_names())));
  return found->second.open(name, threads);
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

}  // namespace fullbore
