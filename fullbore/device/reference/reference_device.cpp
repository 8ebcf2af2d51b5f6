#include <cstring>
#include <vector>

#include "fullbore/device/host_device.h"
#include "fullbore/device/reference_kernel.h"
#include "fullbore/device/registry.h"
#include "fullbore/device/sequential_replay.h"

namespace fullbore {
namespace {

class ReferenceReplay final : public SequentialReplay {
 public:
  using SequentialReplay::SequentialReplay;

 private:
  // Batch inputs are never written, but operands are told apart by their order alone.
  static char* at(const Place& place) {
    return static_cast<char*>(place.host ? const_cast<void*>(place.host)
                                         : reinterpret_cast<void*>(place.address.value));
  }
  void launch(const Kernel& kernel, std::span<const Place> operands) override {
    std::vector<void*> pointers;
    for (const Place& place : operands) pointers.push_back(at(place));
    dynamic_cast<const ReferenceKernel&>(kernel).run(pointers);
  }
  void copy(Place from, Place to, int64_t bytes) override {
    std::memmove(at(to), at(from), static_cast<size_t>(bytes));
  }
  void clear(Place place, int64_t bytes) override {
    std::memset(at(place), 0, static_cast<size_t>(bytes));
  }
  int64_t number(Place place, int64_t bytes, int64_t) const override {
    int64_t value = 0;
    std::memcpy(&value, at(place), static_cast<size_t>(bytes));
    return value;
  }
  void set_number(Place place, int64_t value) override {
    std::memcpy(at(place), &value, sizeof(value));
  }
};

class ReferenceRecorder final : public Recording {
 public:
  std::unique_ptr<Replayable> finish() override {
    return std::make_unique<ReferenceReplay>(take());
  }
};

class ReferenceDevice final : public HostDevice {
 public:
  Target target() const override {
    Target target;
    target.name = "reference";
    target.offers_row_invariance = true;
    return target;
  }
  DeviceFacts facts() const override {
    return {.name = "reference", .hardware = "double precision, one node after another"};
  }
  std::unique_ptr<Compiler> compiler() override { return std::make_unique<ReferenceCompiler>(); }
  std::unique_ptr<Recorder> record() override { return std::make_unique<ReferenceRecorder>(); }
  /// No machine is to be measured by it.
  MeasuredPeaks measure_peaks(const PeakMemory&) override {
    return {.peaks = {1e15, 1e15, 1e15}, .fp32_method = "none", .bf16_method = "none"};
  }
};

const RegisteredDevice registered(
    {.name = "reference",
     .summary = "every op in double precision, rounded where it is stored",
     .open = [](const std::string&, int) -> std::shared_ptr<Device> {
       return std::make_shared<ReferenceDevice>();
     }});

}  // namespace
}  // namespace fullbore
