#include "fullbore/device/cuda/executor/launch_sink.h"

#include <fmt/format.h>

#include "fullbore/base/check.h"
#include "fullbore/base/error.h"
#include "fullbore/device/device_error.h"

namespace fullbore::cuda {

Place behind(Place place, int64_t bytes) {
  place.address = place.address + bytes;
  for (Address& other : place.others) other = other + bytes;
  return place;
}

void** ArgumentTable::of(const Context& context, const Launch& launch,
                         std::span<const Place> operands) {
  addresses_.resize(launch.arguments.size());
  pointers_.resize(launch.arguments.size());
  maps_.clear();
  maps_.reserve(launch.arguments.size());  // pointers to them stay
  for (size_t i = 0; i < launch.arguments.size(); ++i) {
    const Argument& argument = launch.arguments[i];
    if (argument.operand < 0) {
      pointers_[i] = const_cast<std::byte*>(argument.bytes.data());  // the driver only reads it
      continue;
    }
    const auto operand = static_cast<size_t>(argument.operand);
    FB_CHECK(operand < operands.size(), "'{}' wants operand {} of {}", launch.entry, operand,
             operands.size());
    addresses_[i] = (operands[operand].address + argument.offset).value;
    pointers_[i] = &addresses_[i];
    if (argument.map == nullptr) continue;
    try {
      maps_.push_back(encoded_map(context.enter(), *argument.map, addresses_[i]));
    } catch (const DeviceError& e) {
      throw DeviceError(fmt::format("operand {} of '{}': {}", operand, launch.entry, e.what()));
    }
    pointers_[i] = &maps_.back();
  }
  return pointers_.data();
}

void LaunchSink::control(const ControlLaunch& launch) {
  FB_CHECK(false, "'{}' is for graphs with conditional nodes", launch.launch.entry);
}
void LaunchSink::begin_conditional(const ControlLaunch& decision) { LaunchSink::control(decision); }
void LaunchSink::end_conditional() { FB_CHECK(false, "no conditional node has begun"); }

void throw_launch_failure(const char* call, int code, const LoadedKernel& kernel,
                          const Launch& launch) {
  const std::string text = fmt::format(
      "the kernel '{}' of {} failed: grid {}x{}x{}, block {}x{}x{}, {} bytes of dynamic shared "
      "memory; {}: {}",
      launch.entry, kernel.node->node(), launch.grid.x, launch.grid.y, launch.grid.z,
      launch.block.x, launch.block.y, launch.block.z, launch.dynamic_shared_bytes, call,
      result_text(code));
  if (code == kOutOfMemory) throw MemoryError(text);
  throw DeviceError(text);
}

}  // namespace fullbore::cuda
