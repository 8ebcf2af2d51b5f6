#include "card_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "fullbore/device/cuda/driver/context.h"
#include "fullbore/device/cuda/driver/encoded_map.h"
#include "fullbore/device/device_error.h"

namespace fullbore::testing_support {
namespace {

constexpr size_t kGuardBytes = 256;
constexpr std::byte kGuard{0x5a};

const std::shared_ptr<cuda::Context>& context() {
  static const auto made = std::make_shared<cuda::Context>(
      cuda::load_driver(), cuda::card_number(std::getenv("FB_TEST_CARD")));
  return made;
}

/// An operand on the card, with guards behind its end.
class Buffer {
 public:
  Buffer(std::span<const std::byte> contents, int64_t misaligned)
      : bytes_(contents.size()),
        offset_(static_cast<uint64_t>(misaligned)),
        memory_(context(), static_cast<int64_t>(bytes_ + offset_ + kGuardBytes)) {
    std::vector<std::byte> image(contents.begin(), contents.end());
    image.resize(bytes_ + kGuardBytes, kGuard);
    const cuda::Driver& driver = context()->enter();
    driver.copy_in(address(), image.data(), image.size(), context()->main());
    driver.wait_for_stream(context()->main());
  }
  uint64_t address() const { return memory_.get() + offset_; }
  void read(std::span<std::byte> into) const {
    std::vector<std::byte> image(bytes_ + kGuardBytes);
    const cuda::Driver& driver = context()->enter();
    driver.copy_out(image.data(), address(), image.size(), context()->main());
    driver.wait_for_stream(context()->main());
    std::copy_n(image.begin(), bytes_, into.begin());
    if (!std::all_of(image.begin() + static_cast<ptrdiff_t>(bytes_), image.end(),
                     [](std::byte byte) { return byte == kGuard; }))
      throw DeviceError(fmt::format("written behind the {} bytes of an operand", bytes_));
  }

 private:
  size_t bytes_;
  uint64_t offset_;
  cuda::CardMemory memory_;
};

void launch(const cuda::Launch& launch, std::span<const uint64_t> addresses) {
  std::vector<std::vector<std::byte>> values;
  for (const cuda::Argument& argument : launch.arguments) {
    values.push_back(argument.bytes);
    if (argument.operand < 0) continue;
    const uint64_t address =
        addresses[static_cast<size_t>(argument.operand)] + static_cast<uint64_t>(argument.offset);
    if (argument.map) {
      const cuda::EncodedMap map = cuda::encoded_map(context()->enter(), *argument.map, address);
      values.back().assign(map.bytes.begin(), map.bytes.end());
      continue;
    }
    values.back().resize(sizeof(address));
    std::memcpy(values.back().data(), &address, sizeof(address));
  }
  std::vector<void*> pointers;
  for (std::vector<std::byte>& value : values) pointers.push_back(value.data());
  const cuda::FunctionHandle function =
      context()->function(launch.module, launch.entry, launch.dynamic_shared_bytes);
  const cuda::Driver& driver = context()->enter();
  driver.launch(function, launch.grid.x, launch.grid.y, launch.grid.z, launch.block.x,
                launch.block.y, launch.block.z, static_cast<unsigned>(launch.dynamic_shared_bytes),
                context()->main(), pointers.data(), nullptr);
  driver.wait_for_stream(context()->main());
}

}  // namespace

bool runs_on_card() {
  static const bool named = std::getenv("FB_TEST_CARD") != nullptr;
  return named;
}

void run_on_card(const cuda::CudaKernel& kernel, std::span<const std::span<std::byte>> operands,
                 std::span<const int64_t> misaligned) {
  std::vector<std::shared_ptr<const Buffer>> buffers;
  std::vector<uint64_t> addresses;
  for (size_t i = 0; i < operands.size(); ++i) {
    std::shared_ptr<const Buffer> buffer;
    for (size_t before = 0; before < i; ++before)
      if (operands[before].data() == operands[i].data() && !operands[i].empty())
        buffer = buffers[before];
    if (buffer == nullptr)
      buffer = std::make_shared<Buffer>(operands[i], misaligned.empty() ? 0 : misaligned[i]);
    buffers.push_back(buffer);
    addresses.push_back(buffer->address());
  }
  std::vector<std::byte> noise(static_cast<size_t>(kernel.scratch_bytes(1)), std::byte{0xcd});
  const Buffer scratch(noise, 0);
  addresses.push_back(scratch.address());
  for (const cuda::Launch& each : kernel.launches()) launch(each, addresses);
  for (size_t i = 0; i < operands.size(); ++i) buffers[i]->read(operands[i]);
  scratch.read(noise);
}

}  // namespace fullbore::testing_support
