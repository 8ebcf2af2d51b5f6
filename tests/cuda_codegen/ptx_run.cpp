#include "ptx_run.h"

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <vector>

#include "../support/card_run.h"
#include "../support/ptx/machine.h"
#include "fullbore/base/check.h"

namespace fullbore::testing_support {
namespace {

// Parsed once for all launches, where nothing of it has an address.
std::shared_ptr<const ptx::Module> parsed(const std::shared_ptr<const cuda::Module>& module,
                                          const std::string& text, ptx::DeviceMemory& memory) {
  static std::map<std::string, std::shared_ptr<const ptx::Module>> known;
  const auto found = known.find(text);
  if (found != known.end()) return found->second;
  auto made = std::make_shared<ptx::Module>(ptx::parse(text, [&](ptx::GlobalVariable& variable) {
    const auto bytes = static_cast<int64_t>(variable.contents.size());
    const uint64_t address = memory.allocate(bytes);
    std::memcpy(memory.at(address, bytes).data(), variable.contents.data(),
                variable.contents.size());
    return address;
  }));
  // For tools/check_ptx, where ptxas exists.
  if (const char* folder = std::getenv("FB_PTX_FOLDER"); folder != nullptr)
    std::ofstream(std::string(folder) + "/" + module->name + ".ptx") << text;
  FB_CHECK(made->target == "sm_80", "{} is for {}", module->name, made->target);
  if (made->variables.empty()) known.emplace(text, made);
  return made;
}

std::vector<std::byte> parameters_of(const cuda::Launch& launch, const ptx::Kernel& kernel,
                                     const std::vector<uint64_t>& addresses) {
  FB_CHECK(kernel.parameters.size() == launch.arguments.size(), "{} arguments of {}",
           launch.arguments.size(), kernel.parameters.size());
  std::vector<std::byte> bytes(static_cast<size_t>(kernel.parameter_bytes));
  for (size_t i = 0; i < launch.arguments.size(); ++i) {
    const cuda::Argument& argument = launch.arguments[i];
    std::vector<std::byte> value = argument.bytes;
    if (argument.operand >= 0) {
      const uint64_t address =
          addresses[static_cast<size_t>(argument.operand)] + static_cast<uint64_t>(argument.offset);
      value.resize(sizeof(address));
      std::memcpy(value.data(), &address, sizeof(address));
    }
    const ptx::Kernel::Parameter& parameter = kernel.parameters[i];
    FB_CHECK(static_cast<int64_t>(value.size()) == parameter.bytes, "parameter {} of {}", i,
             kernel.name);
    std::memcpy(bytes.data() + parameter.offset, value.data(), value.size());
  }
  return bytes;
}

}  // namespace

void run_on_ptx(const cuda::CudaKernel& kernel, std::span<const std::span<std::byte>> operands,
                const PtxRunOptions& options) {
  if (runs_on_card()) {
    FB_CHECK(!options.edit, "planted faults are for the machine that sees them");
    const std::vector<int64_t> misaligned(operands.size(), options.misaligned);
    return run_on_card(kernel, operands, misaligned);
  }
  ptx::DeviceMemory memory;
  std::vector<uint64_t> addresses;
  for (size_t i = 0; i < operands.size(); ++i) {
    uint64_t address = 0;
    for (size_t before = 0; before < i; ++before)
      if (operands[before].data() == operands[i].data() && !operands[i].empty())
        address = addresses[before];
    const auto bytes = static_cast<int64_t>(operands[i].size());
    if (address == 0) {
      address =
          memory.allocate(bytes + options.misaligned) + static_cast<uint64_t>(options.misaligned);
      if (bytes > 0)
        std::memcpy(memory.at(address, bytes).data(), operands[i].data(), operands[i].size());
    }
    addresses.push_back(address);
  }
  addresses.push_back(memory.allocate(kernel.scratch_bytes(1)));
  for (const cuda::Launch& launch : kernel.launches()) {
    const std::string text = options.edit ? options.edit(launch.module->ptx) : launch.module->ptx;
    const std::shared_ptr<const ptx::Module> module = parsed(launch.module, text, memory);
    const ptx::Kernel& entry = module->kernels.at(launch.entry);
    memory.forget_accesses();
    ptx::run({.kernel = &entry,
              .grid = {launch.grid.x, launch.grid.y, launch.grid.z},
              .block = {launch.block.x, launch.block.y, launch.block.z},
              .dynamic_shared_bytes = launch.dynamic_shared_bytes,
              .parameters = parameters_of(launch, entry, addresses),
              .seed = options.seed},
             memory);
  }
  for (size_t i = 0; i < operands.size(); ++i)
    if (!operands[i].empty())
      std::memcpy(operands[i].data(),
                  memory.at(addresses[i], static_cast<int64_t>(operands[i].size())).data(),
                  operands[i].size());
}

std::vector<Literal> run_on_ptx(const cuda::CudaKernel& kernel,
                                const std::vector<const Literal*>& inputs,
                                const std::vector<TensorType>& outputs,
                                const PtxRunOptions& options, const std::vector<int>& on_input) {
  std::vector<std::vector<char>> contents;
  for (const Literal* input : inputs) contents.push_back(input->bytes());
  for (const TensorType& output : outputs)
    contents.emplace_back(static_cast<size_t>(output.bytes()), static_cast<char>(0xcd));
  std::vector<std::span<std::byte>> operands;
  for (size_t i = 0; i < contents.size(); ++i) {
    size_t place = i;
    if (i >= inputs.size() && !on_input.empty() && on_input[i - inputs.size()] >= 0)
      place = static_cast<size_t>(on_input[i - inputs.size()]);
    operands.push_back(std::as_writable_bytes(std::span(contents[place])));
  }
  run_on_ptx(kernel, operands, options);
  std::vector<Literal> results;
  for (size_t i = 0; i < outputs.size(); ++i)
    results.push_back(Literal::from_bytes(outputs[i], operands[inputs.size() + i].data()));
  return results;
}

}  // namespace fullbore::testing_support
