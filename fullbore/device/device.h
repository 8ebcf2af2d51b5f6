#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fullbore/device/address.h"
#include "fullbore/device/kernel.h"
#include "fullbore/device/peaks.h"
#include "fullbore/device/recorder.h"
#include "fullbore/ir/target.h"

namespace fullbore {

/// A block of a device's memory; freed with the handle. Zeroed when it is allocated.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;
  virtual Address address() const = 0;
  virtual int64_t bytes() const = 0;
};

/// Host memory that a device copies to while the host does other things; pinned where that means something. Zeroed when
/// it is allocated.
class HostMemory {
 public:
  virtual ~HostMemory() = default;
  virtual std::span<std::byte> bytes() = 0;
  /// Until a snapshot into it is whole.
  virtual void wait() = 0;
};

/// What a plan and a report may know of a device.
struct DeviceFacts {
  std::string name;        ///< as open_device() was asked, "cpu"
  std::string hardware;    ///< "AMD EPYC 9B14", or why there is none
  int64_t alignment = 64;  ///< bytes, of every buffer that a plan places
  /// Likewise, of memory that different thread groups write to.
  int64_t group_alignment = 4096;
  int workers = 1;  ///< what work is divided by: threads, multiprocessors
  /// Does State of role `moment` lie in pinned memory of the host (state_in_host.h)?
  bool moments_in_host = false;
};

/// A part of a snapshot: `bytes` from `from` on go to `offset` of the host memory.
struct SnapshotPart {
  Address from;
  int64_t offset = 0;
  int64_t bytes = 0;
};

/// In which order pieces of memory are visited.
enum class Pieces : uint8_t {
  in_order,  ///< one after another, by the calling thread
  any_order  ///< by several threads at once, for disjoint pieces
};

/// How much of a piece of memory is written.
enum class Extent : uint8_t { whole, pieces };

/// One machine for programs: it owns memory, compiles kernels and runs recorded launches. Nothing outside a device
/// knows what its memory, kernels or launches are made of. Order of work for a program: plan, allocate, compile
/// (several programs at once, each with a Compiler of its own), then record; an arena that has moved means recording
/// again.
///
/// Called by one thread at a time, but for target(), facts(), compiler() and what compilers do.
class Device {
 public:
  virtual ~Device() = default;
  virtual Target target() const = 0;  ///< what passes may know
  virtual DeviceFacts facts() const = 0;

  /// MemoryError if there is none.
  virtual std::unique_ptr<DeviceMemory> allocate(int64_t bytes) = 0;
  virtual std::unique_ptr<HostMemory> allocate_host(int64_t bytes) = 0;
  /// Memory that holds what the host's does, and is only read: the host's own where the device can look at it, which
  /// `owner` keeps (a mapped file), or else a copy. At a multiple of `alignment` bytes, which an element's size divides.
  virtual std::unique_ptr<DeviceMemory> lend(std::span<const std::byte> host, int64_t alignment,
                                             std::shared_ptr<const void> owner);

  // Between host and device. All are whole when they return, and come after what was run before.
  virtual void write(Address to, std::span<const std::byte> from) = 0;
  virtual void read(Address from, std::span<std::byte> to) const = 0;
  virtual void copy(Address from, Address to, int64_t bytes) = 0;
  /// Memory whose contents are made piece by piece, in host memory that the device chooses (its own, if it can):
  /// nobody holds a second copy of it all. A piece begins at a multiple of 64 bytes; it holds zeros if nothing was
  /// ever written there.
  using Produce = std::function<void(int64_t offset, std::span<std::byte> piece)>;
  virtual void produce(Address to, int64_t bytes, Pieces order, const Produce& produce) = 0;
  /// Likewise, to look at what is there.
  using Consume = std::function<void(int64_t offset, std::span<const std::byte> piece)>;
  virtual void consume(Address from, int64_t bytes, Pieces order, const Consume& consume) const = 0;
  /// Copies after all runs so far and before later ones write; to.wait() until it is whole. `to_is_zero`: nothing was
  /// written to it yet, so that zeros need not be copied.
  virtual void snapshot(std::span<const SnapshotPart> parts, HostMemory& to, bool to_is_zero) = 0;
  /// How much of that memory programs will write: all of it, or short pieces alone. Contents stay.
  virtual void expect_writes(Address memory, int64_t bytes, Extent extent) {
    (void)memory;
    (void)bytes;
    (void)extent;
  }
  /// Contents stay; what is written there soon will not wait for the system to find memory.
  virtual void make_resident(Address memory, int64_t bytes) {
    (void)memory;
    (void)bytes;
  }

  virtual std::unique_ptr<Compiler> compiler() = 0;
  virtual std::unique_ptr<Recorder> record() = 0;

  /// What the device can do at most, measured: about a second on a machine at rest. Nothing is allocated where what is
  /// lent is as large as it.
  virtual MeasuredPeaks measure_peaks(const PeakMemory& memory) = 0;
};

}  // namespace fullbore
