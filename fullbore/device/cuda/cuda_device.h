#pragma once
#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "fullbore/base/threads.h"
#include "fullbore/device/cuda/driver/context.h"
#include "fullbore/device/device.h"
#include "fullbore/device/occupancy.h"
#include "fullbore/device/state_in_host.h"

namespace fullbore::cuda {

class PinnedBlock;

/// An NVIDIA card. Runs and what comes behind them are in one stream, batches and snapshots in streams of their own.
class CudaDevice final : public Device, public OccupancySource, public StateInHost {
 public:
  /// `name`: "cuda", or "cuda:1" where there are several. UsageError, MemoryError, DeviceError: the card cannot be used.
  /// `moments_in_host`: what DeviceFacts say.
  explicit CudaDevice(const std::string& name, bool moments_in_host = false);
  ~CudaDevice() override;

  Target target() const override;
  DeviceFacts facts() const override;
  std::unique_ptr<DeviceMemory> allocate(int64_t bytes) override;
  std::unique_ptr<HostMemory> allocate_host(int64_t bytes) override;
  std::unique_ptr<DeviceMemory> allocate_in_host(int64_t bytes) override;
  void write(Address to, std::span<const std::byte> from) override;
  void read(Address from, std::span<std::byte> to) const override;
  void copy(Address from, Address to, int64_t bytes) override;
  void produce(Address to, int64_t bytes, Pieces order, const Produce& produce) override;
  void consume(Address from, int64_t bytes, Pieces order, const Consume& consume) const override;
  void snapshot(std::span<const SnapshotPart> parts, HostMemory& to, bool to_is_zero) override;
  std::unique_ptr<Compiler> compiler() override;
  std::unique_ptr<Recorder> record() override;
  MeasuredPeaks measure_peaks(const PeakMemory& memory) override;
  std::optional<Occupancy> occupancy(const Kernel& kernel) override;

 private:
  class Staging;
  using Slots = std::array<std::unique_ptr<PinnedBlock>, 2>;

  std::byte* host_state(Address address) const;

  std::string name_;
  bool moments_in_host_ = false;
  std::shared_ptr<Context> context_;
  mutable std::atomic_flag staging_is_taken_;
  mutable Slots staging_;
  std::atomic_flag pool_is_taken_;
  std::unique_ptr<ThreadPool> pool_;  ///< of what the host makes; made when it is needed first
};

}  // namespace fullbore::cuda
