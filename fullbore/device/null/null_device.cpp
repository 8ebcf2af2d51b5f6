#include <fmt/format.h>

#include <map>
#include <mutex>
#include <utility>

#include "fullbore/base/check.h"
#include "fullbore/base/error.h"
#include "fullbore/base/tensor_memory.h"
#include "fullbore/base/threads.h"
#include "fullbore/device/host_device.h"
#include "fullbore/device/registry.h"
#include "fullbore/device/sequential_replay.h"
#include "fullbore/ir/op_def.h"

namespace fullbore {
namespace {

/// Memory at addresses that no processor can follow, behind which the contents lie that the host wrote. Every address
/// that is used is one of them, or the process ends.
class NullMemory {
 public:
  Address allocate(int64_t bytes) {
    TensorMemory contents = allocate_tensor_memory(bytes);
    if (!contents) throw MemoryError(fmt::format("cannot allocate {} bytes", bytes));
    const std::scoped_lock lock(mutex_);
    const Address address{next_};
    next_ += (static_cast<uint64_t>(bytes) / kGap + 2) * kGap;
    blocks_.emplace(address, Block{bytes, std::move(contents)});
    return address;
  }
  void free(Address address) {
    const std::scoped_lock lock(mutex_);
    blocks_.erase(address);
  }
  /// What the host may look at in place of `bytes` bytes from there on.
  std::byte* contents(Address address, int64_t bytes) const {
    const std::scoped_lock lock(mutex_);
    auto block = blocks_.upper_bound(address);
    FB_CHECK(block != blocks_.begin(), "address {:#x} is of no memory", address.value);
    --block;
    const auto offset = static_cast<int64_t>(address.value - block->first.value);
    FB_CHECK(offset + bytes <= block->second.bytes, "{} bytes at {} of memory of {}", bytes, offset,
             block->second.bytes);
    return reinterpret_cast<std::byte*>(block->second.contents.get() + offset);
  }

 private:
  // Beyond what x86-64 (57 bits) and AArch64 (52 bits below the byte that it ignores) translate for a process:
  // following one is a fault at once.
  static constexpr uint64_t kFirst = 0x0FF0'0000'0000'0000;
  static constexpr uint64_t kGap = 4096;
  struct Block {
    int64_t bytes;
    TensorMemory contents;
  };
  mutable std::mutex mutex_;
  std::map<Address, Block> blocks_;
  uint64_t next_ = kFirst;
};

class NullKernel final : public Kernel {
 public:
  NullKernel(std::string_view op, int64_t elements) : op_(op), elements_(elements) {}
  double nanoseconds() const override { return static_cast<double>(elements_); }
  std::string description() const override { return fmt::format("null {}", op_); }

 private:
  std::string_view op_;
  int64_t elements_;
};

class NullCompiler final : public Compiler {
 public:
  std::unique_ptr<Kernel> compile(const Graph& graph, const Node& node, int) override {
    const int64_t elements = node.outputs.empty() ? 0 : graph.type(node.outputs[0]).elements();
    return std::make_unique<NullKernel>(node.op->name, elements);
  }
};

/// Walks loops to their ends and looks whether every operand lies in memory; changes nothing.
class NullReplay final : public SequentialReplay {
 public:
  NullReplay(std::vector<RecordedLaunch> launches, const NullMemory& memory)
      : SequentialReplay(std::move(launches)), memory_(memory) {}

 private:
  void launch(const Kernel&, std::span<const Place> operands) override {
    for (const Place& place : operands) look(place, 0);
  }
  void copy(Place from, Place to, int64_t bytes) override {
    look(from, bytes);
    look(to, bytes);
  }
  void clear(Place place, int64_t bytes) override { look(place, bytes); }
  int64_t number(Place place, int64_t bytes, int64_t otherwise) const override {
    look(place, bytes);
    return otherwise;
  }
  void set_number(Place place, int64_t) override { look(place, sizeof(int64_t)); }
  void look(const Place& place, int64_t bytes) const {
    if (!place.host) (void)memory_.contents(place.address, bytes);
  }

  const NullMemory& memory_;
};

class NullRecorder final : public Recording {
 public:
  explicit NullRecorder(const NullMemory& memory) : memory_(memory) {}
  std::unique_ptr<Replayable> finish() override {
    return std::make_unique<NullReplay>(take(), memory_);
  }

 private:
  const NullMemory& memory_;
};

class NullDeviceMemory final : public DeviceMemory {
 public:
  NullDeviceMemory(std::shared_ptr<NullMemory> memory, int64_t bytes)
      : memory_(std::move(memory)), address_(memory_->allocate(bytes)), bytes_(bytes) {}
  ~NullDeviceMemory() override { memory_->free(address_); }
  NullDeviceMemory(const NullDeviceMemory&) = delete;
  NullDeviceMemory& operator=(const NullDeviceMemory&) = delete;
  Address address() const override { return address_; }
  int64_t bytes() const override { return bytes_; }

 private:
  std::shared_ptr<NullMemory> memory_;
  Address address_;
  int64_t bytes_;
};

class NullDevice final : public HostDevice {
 public:
  explicit NullDevice(int threads) : threads_(threads > 0 ? threads : available_processors()) {}

  Target target() const override {
    Target target;
    target.name = "null";
    target.offers_row_invariance = true;
    target.threads = threads_;
    return target;
  }
  DeviceFacts facts() const override {
    return {.name = "null", .hardware = "none: nothing is computed", .workers = threads_};
  }
  std::unique_ptr<DeviceMemory> allocate(int64_t bytes) override {
    return std::make_unique<NullDeviceMemory>(memory_, bytes);
  }
  std::unique_ptr<DeviceMemory> lend(std::span<const std::byte> host, int64_t alignment,
                                     std::shared_ptr<const void> owner) override {
    // As any device, not as the host, whose addresses nothing here may follow.
    return Device::lend(host, alignment, std::move(owner));  // NOLINT(bugprone-parent-virtual-call)
  }
  std::unique_ptr<Compiler> compiler() override { return std::make_unique<NullCompiler>(); }
  std::unique_ptr<Recorder> record() override { return std::make_unique<NullRecorder>(*memory_); }
  /// Beyond every machine, so that no step exceeds them.
  MeasuredPeaks measure_peaks(const PeakMemory&) override {
    return {.peaks = {1e15, 1e15, 1e15}, .fp32_method = "none", .bf16_method = "none"};
  }

 private:
  std::byte* contents(Address address, int64_t bytes) const override {
    return memory_->contents(address, bytes);
  }

  int threads_;
  std::shared_ptr<NullMemory> memory_ = std::make_shared<NullMemory>();
};

const RegisteredDevice registered(
    {.name = "null",
     .summary = "everything but the arithmetic, at addresses that cannot be followed",
     .open = [](const std::string&, int threads) -> std::shared_ptr<Device> {
       return std::make_shared<NullDevice>(threads);
     }});

}  // namespace
}  // namespace fullbore
