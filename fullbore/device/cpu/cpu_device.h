#pragma once
#include <memory>

#include "fullbore/base/threads.h"
#include "fullbore/device/host_device.h"

namespace fullbore::cpu {

/// The processor at hand: memory of the host, kernels by hand or compiled from kernel IR, a pool of threads.
class CpuDevice final : public HostDevice {
 public:
  /// The threads start when the first work is given to them: who only plans has none.
  explicit CpuDevice(int threads);
  ~CpuDevice() override;

  Target target() const override;
  DeviceFacts facts() const override { return facts_; }
  void produce(Address to, int64_t bytes, Pieces order, const Produce& produce) override;
  void consume(Address from, int64_t bytes, Pieces order, const Consume& consume) const override;
  void snapshot(std::span<const SnapshotPart> parts, HostMemory& to, bool to_is_zero) override;
  void expect_writes(Address memory, int64_t bytes, Extent extent) override;
  void make_resident(Address memory, int64_t bytes) override;
  std::unique_ptr<Compiler> compiler() override;
  std::unique_ptr<Recorder> record() override;
  MeasuredPeaks measure_peaks(const PeakMemory& memory) override;

 private:
  ThreadPool& pool() const;
  /// Whole lines of the cache of `bytes`, each worker a part.
  template <class Body>
  void in_pieces(int64_t bytes, Pieces order, const Body& body) const;

  DeviceFacts facts_;
  mutable std::unique_ptr<ThreadPool> pool_;
};

}  // namespace fullbore::cpu
