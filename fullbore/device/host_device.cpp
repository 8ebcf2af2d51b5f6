#include "fullbore/device/host_device.h"

#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "fullbore/base/error.h"
#include "fullbore/base/tensor_memory.h"
#include "fullbore/base/text.h"

namespace fullbore {
namespace {

TensorMemory allocate_or_throw(int64_t bytes) {
  TensorMemory memory = allocate_tensor_memory(bytes);
  if (!memory)
    throw MemoryError(
        fmt::format("cannot allocate {} of memory", bytes_text(static_cast<double>(bytes))));
  return memory;
}

class Block final : public DeviceMemory {
 public:
  explicit Block(int64_t bytes) : memory_(allocate_or_throw(bytes)), bytes_(bytes) {}
  Address address() const override { return {reinterpret_cast<uint64_t>(memory_.get())}; }
  int64_t bytes() const override { return bytes_; }

 private:
  TensorMemory memory_;
  int64_t bytes_;
};

class LentBlock final : public DeviceMemory {
 public:
  LentBlock(std::span<const std::byte> host, std::shared_ptr<const void> owner)
      : host_(host), owner_(std::move(owner)) {}
  Address address() const override { return {reinterpret_cast<uint64_t>(host_.data())}; }
  int64_t bytes() const override { return static_cast<int64_t>(host_.size()); }

 private:
  std::span<const std::byte> host_;
  std::shared_ptr<const void> owner_;
};

class HostBlock final : public HostMemory {
 public:
  explicit HostBlock(int64_t bytes) : memory_(allocate_or_throw(bytes)), bytes_(bytes) {}
  std::span<std::byte> bytes() override {
    return {reinterpret_cast<std::byte*>(memory_.get()), static_cast<size_t>(bytes_)};
  }
  void wait() override {}  // snapshots are whole when they return

 private:
  TensorMemory memory_;
  int64_t bytes_;
};

}  // namespace

// The owner is for devices that keep it.
std::unique_ptr<DeviceMemory> Device::lend(
    std::span<const std::byte> host, int64_t,
    std::shared_ptr<const void>) {  // NOLINT(performance-unnecessary-value-param)
  std::unique_ptr<DeviceMemory> copy = allocate(static_cast<int64_t>(host.size()));
  write(copy->address(), host);
  return copy;
}

std::unique_ptr<DeviceMemory> HostDevice::lend(std::span<const std::byte> host, int64_t alignment,
                                               std::shared_ptr<const void> owner) {
  if (reinterpret_cast<uint64_t>(host.data()) % static_cast<uint64_t>(alignment) != 0)
    return Device::lend(host, alignment, std::move(owner));
  return std::make_unique<LentBlock>(host, std::move(owner));
}

std::unique_ptr<DeviceMemory> HostDevice::allocate(int64_t bytes) {
  return std::make_unique<Block>(bytes);
}

std::unique_ptr<HostMemory> HostDevice::allocate_host(int64_t bytes) {
  return std::make_unique<HostBlock>(bytes);
}

std::byte* HostDevice::contents(Address address, int64_t) const {
  return reinterpret_cast<std::byte*>(address.value);
}

void HostDevice::write(Address to, std::span<const std::byte> from) {
  if (from.empty()) return;
  std::memcpy(contents(to, static_cast<int64_t>(from.size())), from.data(), from.size());
}

void HostDevice::read(Address from, std::span<std::byte> to) const {
  if (to.empty()) return;
  std::memcpy(to.data(), contents(from, static_cast<int64_t>(to.size())), to.size());
}

void HostDevice::copy(Address from, Address to, int64_t bytes) {
  if (bytes > 0)
    std::memmove(contents(to, bytes), contents(from, bytes), static_cast<size_t>(bytes));
}

void HostDevice::produce(Address to, int64_t bytes, Pieces, const Produce& produce) {
  if (bytes > 0) produce(0, {contents(to, bytes), static_cast<size_t>(bytes)});
}

void HostDevice::consume(Address from, int64_t bytes, Pieces, const Consume& consume) const {
  if (bytes > 0) consume(0, {contents(from, bytes), static_cast<size_t>(bytes)});
}

void HostDevice::snapshot(std::span<const SnapshotPart> parts, HostMemory& to, bool) {
  for (const SnapshotPart& part : parts)
    read(part.from,
         to.bytes().subspan(static_cast<size_t>(part.offset), static_cast<size_t>(part.bytes)));
}

}  // namespace fullbore
