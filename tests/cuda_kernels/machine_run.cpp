#include "tests/cuda_kernels/machine_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <span>
#include <utility>

#include "fullbore/device/cuda/driver/handles.h"
#include "fullbore/device/device_error.h"
#include "tests/support/card_run.h"
#include "tests/support/ptx/machine.h"
#include "tests/support/ptx/tensor_map.h"

namespace fullbore::testing_support {
namespace {

/// Parsed once: a module has one entry, and outlives no test.
const ptx::Kernel& kernel_of(const cuda::Launch& launch) {
  static std::map<std::string, ptx::Module> modules;
  auto found = modules.find(launch.module->ptx);
  if (found == modules.end())
    found = modules.emplace(launch.module->ptx, ptx::parse(launch.module->ptx)).first;
  return found->second.kernels.at(launch.entry);
}

/// As the driver makes it.
std::vector<std::byte> map_of(const cuda::TensorMap& map, uint64_t address) {
  alignas(ptx::kTensorMapAlignment) std::array<std::byte, ptx::kTensorMapBytes> made{};
  constexpr std::array<uint32_t, 3> kEach = {1, 1, 1};
  if (ptx::encode_tensor_map(
          made.data(), map.dtype == DType::f16 ? cuda::kMapOfF16 : cuda::kMapOfBf16, 3,
          reinterpret_cast<void*>(address), map.extents.data(), map.strides.data(), map.box.data(),
          kEach.data(), 0, cuda::kMapSwizzle128, cuda::kMapPromotion256, 0) != 0)
    throw ptx::Fault("an operand that no tensor map can be made of");
  return {made.begin(), made.end()};
}

/// Bytes of a parameter by value, or of an address, as a launch passes them.
std::vector<std::byte> bytes_of(const cuda::Argument& argument,
                                const std::vector<uint64_t>& addresses) {
  if (argument.operand < 0) return argument.bytes;
  const uint64_t address =
      addresses.at(static_cast<size_t>(argument.operand)) + static_cast<uint64_t>(argument.offset);
  if (argument.map) return map_of(*argument.map, address);
  std::vector<std::byte> bytes(sizeof(address));
  std::memcpy(bytes.data(), &address, sizeof(address));
  return bytes;
}

/// Parameters one behind the other, each where the entry has it.
std::vector<std::byte> parameters_of(const cuda::Launch& launch, const ptx::Kernel& kernel,
                                     const std::vector<uint64_t>& addresses) {
  std::vector<std::byte> all(static_cast<size_t>(kernel.parameter_bytes));
  if (launch.arguments.size() != kernel.parameters.size())
    throw ptx::Fault(fmt::format("{} has {} parameters, and was given {}", launch.entry,
                                 kernel.parameters.size(), launch.arguments.size()));
  for (size_t i = 0; i < launch.arguments.size(); ++i) {
    const std::vector<std::byte> bytes = bytes_of(launch.arguments[i], addresses);
    const ptx::Kernel::Parameter& parameter = kernel.parameters[i];
    if (static_cast<int64_t>(bytes.size()) != parameter.bytes)
      throw ptx::Fault(fmt::format("parameter {} of {} has {} bytes, and was given {}", i,
                                   launch.entry, parameter.bytes, bytes.size()));
    std::ranges::copy(bytes, all.begin() + parameter.offset);
  }
  return all;
}

ptx::Extent extent_of(const cuda::Extent& extent) { return {extent.x, extent.y, extent.z}; }

class Operands {
 public:
  uint64_t add(int64_t bytes, int64_t misalignment) {
    const uint64_t address =
        memory_.allocate(bytes + misalignment) + static_cast<uint64_t>(misalignment);
    places_.emplace_back(address, bytes);
    return address;
  }
  uint64_t add(const std::vector<char>& contents, int64_t misalignment) {
    const uint64_t address = add(static_cast<int64_t>(contents.size()), misalignment);
    if (!contents.empty())
      std::memcpy(memory_.at(address, static_cast<int64_t>(contents.size())).data(),
                  contents.data(), contents.size());
    return address;
  }
  std::vector<char> contents(size_t operand) {
    const auto [address, bytes] = places_.at(operand);
    std::vector<char> result(static_cast<size_t>(bytes));
    if (bytes > 0) std::memcpy(result.data(), memory_.at(address, bytes).data(), result.size());
    return result;
  }
  ptx::DeviceMemory& memory() { return memory_; }

 private:
  ptx::DeviceMemory memory_;
  std::vector<std::pair<uint64_t, int64_t>> places_;
};

/// The same on the card that the environment names.
MachineResult run_there(const cuda::CudaKernel& kernel, const std::vector<const Literal*>& inputs,
                        const std::vector<TensorType>& outputs, const MachineOptions& options) {
  std::vector<std::vector<char>> contents;
  std::vector<int64_t> misaligned;
  const auto add = [&](std::vector<char> bytes, DType dtype) {
    contents.push_back(std::move(bytes));
    misaligned.push_back(options.misaligned ? dtype_bytes(dtype) : 0);
  };
  for (const Literal* const input : inputs) add(input->bytes(), input->dtype());
  for (const TensorType& output : outputs)
    add(std::vector<char>(static_cast<size_t>(output.bytes()), static_cast<char>(0xcd)),
        output.dtype);
  std::vector<std::span<std::byte>> operands;
  for (size_t i = 0; i < contents.size(); ++i) {
    const bool aliased =
        options.alias_input >= 0 && i == inputs.size() + static_cast<size_t>(options.alias_output);
    operands.push_back(std::as_writable_bytes(
        std::span(contents[aliased ? static_cast<size_t>(options.alias_input) : i])));
  }
  MachineResult result;
  try {
    run_on_card(kernel, operands, misaligned);
  } catch (const DeviceError& error) {
    result.problem = fmt::format("{}: {}", options.text(), error.what());
  }
  for (size_t i = 0; i < inputs.size(); ++i)
    if (static_cast<int>(i) != options.alias_input && contents[i] != inputs[i]->bytes())
      result.problem = fmt::format("{}: wrote into input {}", options.text(), i);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::span<const std::byte> bytes = operands[inputs.size() + i];
    result.outputs.emplace_back(reinterpret_cast<const char*>(bytes.data()),
                                reinterpret_cast<const char*>(bytes.data()) + bytes.size());
  }
  return result;
}

}  // namespace

std::string MachineOptions::text() const {
  std::string text = fmt::format("seed {}", seed);
  if (misaligned) text += ", misaligned";
  if (alias_input >= 0) text += fmt::format(", output {} on input {}", alias_output, alias_input);
  return text;
}

MachineResult run_on_machine(const cuda::CudaKernel& kernel,
                             const std::vector<const Literal*>& inputs,
                             const std::vector<TensorType>& outputs,
                             const MachineOptions& options) {
  if (runs_on_card()) return run_there(kernel, inputs, outputs, options);
  Operands operands;
  std::vector<uint64_t> addresses;
  std::vector<std::vector<char>> given;
  const auto off = [&](DType dtype) { return options.misaligned ? dtype_bytes(dtype) : 0; };
  for (const Literal* const input : inputs) {
    given.push_back(input->bytes());
    addresses.push_back(operands.add(given.back(), off(input->dtype())));
  }
  for (const TensorType& output : outputs)
    addresses.push_back(operands.add(output.bytes(), off(output.dtype)));
  addresses.push_back(operands.add(kernel.scratch_bytes(1), 0));
  std::vector<size_t> places(addresses.size());
  for (size_t i = 0; i < places.size(); ++i) places[i] = i;
  if (options.alias_input >= 0) {
    const size_t aliased = inputs.size() + static_cast<size_t>(options.alias_output);
    places[aliased] = static_cast<size_t>(options.alias_input);
    addresses[aliased] = addresses[places[aliased]];
  }

  MachineResult result;
  try {
    for (const cuda::Launch& launch : kernel.launches()) {
      const ptx::Kernel& entry = kernel_of(launch);
      operands.memory().forget_accesses();
      result.instructions += ptx::run({.kernel = &entry,
                                       .grid = extent_of(launch.grid),
                                       .block = extent_of(launch.block),
                                       .dynamic_shared_bytes = launch.dynamic_shared_bytes,
                                       .parameters = parameters_of(launch, entry, addresses),
                                       .seed = options.seed},
                                      operands.memory())
                                 .instructions;
    }
  } catch (const ptx::Fault& fault) {
    result.problem = fmt::format("{}: {}", options.text(), fault.what());
  }
  for (size_t i = 0; i < inputs.size(); ++i)
    if (static_cast<int>(i) != options.alias_input && operands.contents(i) != given[i])
      result.problem = fmt::format("{}: wrote into input {}", options.text(), i);
  for (size_t i = 0; i < outputs.size(); ++i)
    result.outputs.push_back(operands.contents(places[inputs.size() + i]));
  return result;
}

MachineResult run_in_all_ways(const cuda::CudaKernel& kernel,
                              const std::vector<const Literal*>& inputs,
                              const std::vector<TensorType>& outputs) {
  MachineResult result = run_on_machine(kernel, inputs, outputs, {});
  // No map is of an address that is no multiple of 16.
  const bool has_maps = std::ranges::any_of(kernel.launches(), [](const cuda::Launch& launch) {
    return std::ranges::any_of(launch.arguments,
                               [](const cuda::Argument& each) { return each.map != nullptr; });
  });
  std::vector<MachineOptions> ways = {{.seed = 17, .misaligned = !has_maps}};
  for (size_t input = 0; input < inputs.size(); ++input)
    for (size_t output = 0; output < outputs.size(); ++output)
      if (kernel.may_alias(static_cast<int>(input), static_cast<int>(output)))
        ways.push_back({.seed = 3,
                        .alias_input = static_cast<int>(input),
                        .alias_output = static_cast<int>(output)});
#if defined(__SANITIZE_ADDRESS__)
  ways.clear();  // the host does the same in all of them
#endif
  for (const MachineOptions& way : ways) {
    if (!result.problem.empty()) break;
    const MachineResult other = run_on_machine(kernel, inputs, outputs, way);
    result.problem = other.problem;
    for (size_t i = 0; i < outputs.size() && result.problem.empty(); ++i)
      if (other.outputs[i] != result.outputs[i])
        result.problem = fmt::format("{}: other bits, output {}", way.text(), i);
  }
  return result;
}

}  // namespace fullbore::testing_support
