#pragma once
#include "fullbore/device/device.h"

namespace fullbore {

/// A device whose memory is the host's: everything between host and device is a copy by the calling thread. What
/// derives from it compiles and records.
class HostDevice : public Device {
 public:
  std::unique_ptr<DeviceMemory> allocate(int64_t bytes) override;
  std::unique_ptr<HostMemory> allocate_host(int64_t bytes) override;
  std::unique_ptr<DeviceMemory> lend(std::span<const std::byte> host, int64_t alignment,
                                     std::shared_ptr<const void> owner) override;
  void write(Address to, std::span<const std::byte> from) override;
  void read(Address from, std::span<std::byte> to) const override;
  void copy(Address from, Address to, int64_t bytes) override;
  void produce(Address to, int64_t bytes, Pieces order, const Produce& produce) override;
  void consume(Address from, int64_t bytes, Pieces order, const Consume& consume) const override;
  void snapshot(std::span<const SnapshotPart> parts, HostMemory& to, bool to_is_zero) override;

 protected:
  /// Where the host finds the `bytes` bytes at an address.
  virtual std::byte* contents(Address address, int64_t bytes) const;
};

}  // namespace fullbore
