// A device that nothing in the library knows: it registers itself from here, gives out addresses that only it can
// follow, and trains.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "fullbore/device/host_device.h"
#include "fullbore/device/reference_kernel.h"
#include "fullbore/device/registry.h"
#include "fullbore/device/sequential_replay.h"
#include "fullbore/train/step_runner.h"

namespace fullbore {
namespace {

// Added to every pointer: beyond what a processor translates.
constexpr uint64_t kFar = 0x0FF0'0000'0000'0000;

std::byte* pointer(Address address) { return reinterpret_cast<std::byte*>(address.value - kFar); }

class FarMemory final : public DeviceMemory {
 public:
  explicit FarMemory(int64_t bytes) : contents_(static_cast<size_t>(bytes) + 1) {}
  Address address() const override { return {reinterpret_cast<uint64_t>(contents_.data()) + kFar}; }
  int64_t bytes() const override { return static_cast<int64_t>(contents_.size()) - 1; }

 private:
  std::vector<std::byte> contents_;
};

int64_t launches_made = 0;

class FarReplay final : public SequentialReplay {
 public:
  using SequentialReplay::SequentialReplay;

 private:
  // Batch inputs are never written, but operands are told apart by their order alone.
  static void* at(const Place& place) {
    return place.host ? const_cast<void*>(place.host) : pointer(place.address);
  }
  void launch(const Kernel& kernel, std::span<const Place> operands) override {
    ++launches_made;
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
    std::memcpy(pointer(place.address), &value, sizeof value);
  }
};

class FarRecorder final : public Recording {
 public:
  std::unique_ptr<Replayable> finish() override { return std::make_unique<FarReplay>(take()); }
};

class FarDevice final : public HostDevice {
 public:
  Target target() const override {
    Target target;
    target.name = "far";
    return target;
  }
  DeviceFacts facts() const override {
    return {.name = "far",
            .hardware = "of a test",
            .alignment = 16,
            .group_alignment = 16,
            .workers = 3};
  }
  std::unique_ptr<DeviceMemory> allocate(int64_t bytes) override {
    return std::make_unique<FarMemory>(bytes);
  }
  std::unique_ptr<Compiler> compiler() override { return std::make_unique<ReferenceCompiler>(); }
  std::unique_ptr<Recorder> record() override { return std::make_unique<FarRecorder>(); }
  MeasuredPeaks measure_peaks(const PeakMemory&) override {
    return {.peaks = {1, 1, 1}, .fp32_method = "none", .bf16_method = "none"};
  }

 private:
  std::byte* contents(Address address, int64_t) const override { return pointer(address); }
};

const RegisteredDevice far({.name = "far",
                            .summary = "of a test",
                            .open = [](const std::string&, int) -> std::shared_ptr<Device> {
                              return std::make_shared<FarDevice>();
                            }});

/// y = x . (1, -2, 3).
class Lines : public BatchSource {
 public:
  const std::vector<BatchField>& fields() const override { return fields_; }
  void fill(uint64_t position, std::span<void* const> buffers) const override {
    auto* x = static_cast<float*>(buffers[0]);
    auto* y = static_cast<float*>(buffers[1]);
    for (int i = 0; i < 24; ++i)
      x[i] = static_cast<float>((position * 7 + static_cast<uint64_t>(i) * 5) % 13) / 13 - 0.5F;
    for (int row = 0; row < 8; ++row) y[row] = x[row * 3] - 2 * x[row * 3 + 1] + 3 * x[row * 3 + 2];
  }

 private:
  std::vector<BatchField> fields_ = {{"x", {DType::f32, {8, 3}}}, {"y", {DType::f32, {8}}}};
};

Loss squared_error(Trace& trace, std::span<const Tensor> batch) {
  const Tensor weight = trace.parameter("weight", {3}, Initializer::normal(0.1));
  const Tensor error = reduce_sum(batch[0] * weight, {1}) - batch[1];
  return reduce_mean(error * error, {0});
}

std::vector<float> trained_on(const std::string& device) {
  TrainingJob job;
  job.training = std::make_shared<Lines>();
  job.loss = squared_error;
  job.options.device = device;
  job.options.parts = {.accumulate = 1,
                       .parallel = 2};  // a parallel loop, of thread groups where there are workers
  job.options.optimizer.schedule = {"constant", 0.1, 0, 0, 1};
  StepRunner runner(job);
  double loss = 0;
  for (int i = 0; i < 60; ++i) loss = runner.run().loss;
  EXPECT_LT(loss, 0.05) << device;
  return runner.state().read<float>("weight");
}

TEST(OwnDevice, TrainsAndAgreesWithTheReferenceDevice) {
  const std::vector<float> expected = trained_on("reference");
  launches_made = 0;
  EXPECT_EQ(trained_on("far"), expected);
  EXPECT_GT(launches_made, 60);
}

}  // namespace
}  // namespace fullbore
