#include <fmt/format.h>

#include <cstring>
#include <utility>
#include <vector>

#include "fullbore/device/host_device.h"
#include "fullbore/device/interpret.h"
#include "fullbore/device/registry.h"
#include "fullbore/device/sequential_replay.h"

namespace fullbore {
namespace {

/// One node by its op's reference, in double; rounded to the graph's dtypes where it is stored.
class ReferenceKernel final : public Kernel {
 public:
  ReferenceKernel(const Graph& graph, const Node& node) : node_(node) {
    for (const Value input : node.inputs) inputs_.push_back(graph.type(input));
    for (const Value output : node.outputs) outputs_.push_back(graph.type(output));
  }
  double nanoseconds() const override { return 1e6; }
  std::string description() const override { return fmt::format("reference {}", node_.op->name); }

  /// `operands`: inputs, then outputs.
  void run(std::span<void* const> operands) const {
    std::vector<Literal> inputs;
    for (size_t i = 0; i < inputs_.size(); ++i)
      inputs.push_back(Literal::from_bytes(inputs_[i], operands[i]));
    std::vector<const Literal*> given;
    for (const Literal& input : inputs) given.push_back(&input);
    std::vector<Literal> results = interpret_node(node_, outputs_, given);
    for (size_t i = 0; i < results.size(); ++i) {
      results[i].round();
      const std::vector<char> bytes = results[i].bytes();
      if (!bytes.empty()) std::memcpy(operands[inputs_.size() + i], bytes.data(), bytes.size());
    }
  }

 private:
  Node node_;
  std::vector<TensorType> inputs_;
  std::vector<TensorType> outputs_;
};

class ReferenceCompiler final : public Compiler {
 public:
  std::unique_ptr<Kernel> compile(const Graph& graph, const Node& node, int) override {
    return std::make_unique<ReferenceKernel>(graph, node);
  }
};

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
