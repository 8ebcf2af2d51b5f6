#include "generated_device.h"

#include <cstring>

#include "fullbore/device/cuda/codegen/generated_kernel.h"
#include "fullbore/device/host_device.h"
#include "fullbore/device/reference_kernel.h"
#include "fullbore/device/sequential_replay.h"
#include "ptx_run.h"

namespace fullbore::testing_support {
namespace {

/// A generated kernel with the sizes of its operands, or the reference.
class AnyKernel final : public Kernel {
 public:
  AnyKernel(const Graph& graph, const Node& node, GeneratedCounts& counts)
      : reference_(graph, node) {
    const cuda::CardFacts card;
    generated_ = cuda::make_generated_kernel({graph, node, card}, nullptr);
    ++(generated_ ? counts.generated : counts.others);
    for (Value input : node.inputs) bytes_.push_back(graph.type(input).bytes());
    for (Value output : node.outputs) bytes_.push_back(graph.type(output).bytes());
  }
  double nanoseconds() const override { return 1e6; }
  bool may_alias(int input, int output) const override {
    return generated_ && generated_->may_alias(input, output);
  }
  std::string description() const override {
    return generated_ ? generated_->description() : reference_.description();
  }
  void run(const std::vector<void*>& operands) const {
    if (!generated_) return reference_.run(operands);
    std::vector<std::span<std::byte>> spans;
    for (size_t i = 0; i < operands.size(); ++i)
      spans.emplace_back(static_cast<std::byte*>(operands[i]), static_cast<size_t>(bytes_[i]));
    run_on_ptx(*generated_, spans);
  }

 private:
  ReferenceKernel reference_;
  std::unique_ptr<cuda::CudaKernel> generated_;
  std::vector<int64_t> bytes_;
};

class AnyCompiler final : public Compiler {
 public:
  explicit AnyCompiler(GeneratedCounts& counts) : counts_(counts) {}
  std::unique_ptr<Kernel> compile(const Graph& graph, const Node& node, int) override {
    return std::make_unique<AnyKernel>(graph, node, counts_);
  }

 private:
  GeneratedCounts& counts_;
};

class Replay final : public SequentialReplay {
 public:
  using SequentialReplay::SequentialReplay;

 private:
  static void* at(const Place& place) {
    return place.host ? const_cast<void*>(place.host)
                      : reinterpret_cast<void*>(place.address.value);
  }
  void launch(const Kernel& kernel, std::span<const Place> operands) override {
    std::vector<void*> pointers;
    for (const Place& place : operands) pointers.push_back(at(place));
    dynamic_cast<const AnyKernel&>(kernel).run(pointers);
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

class Recorder final : public Recording {
 public:
  std::unique_ptr<Replayable> finish() override { return std::make_unique<Replay>(take()); }
};

class GeneratedDevice final : public HostDevice {
 public:
  explicit GeneratedDevice(GeneratedCounts& counts) : counts_(counts) {}
  Target target() const override {
    Target target;
    target.name = "generated";
    return target;
  }
  DeviceFacts facts() const override {
    return {.name = "generated", .hardware = "PTX, executed by the tests"};
  }
  std::unique_ptr<Compiler> compiler() override { return std::make_unique<AnyCompiler>(counts_); }
  std::unique_ptr<fullbore::Recorder> record() override { return std::make_unique<Recorder>(); }
  MeasuredPeaks measure_peaks(const PeakMemory&) override {
    return {.peaks = {1, 1, 1}, .fp32_method = "none", .bf16_method = "none"};
  }

 private:
  GeneratedCounts& counts_;
};

}  // namespace

std::shared_ptr<Device> generated_device(GeneratedCounts* counts) {
  return std::make_shared<GeneratedDevice>(*counts);
}

}  // namespace fullbore::testing_support
