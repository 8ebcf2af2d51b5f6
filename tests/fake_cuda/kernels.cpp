// The fake driver's calls about functions and launches.
#include <fmt/format.h>

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fullbore/device/cuda/driver/handles.h"
#include "tests/fake_cuda/entry.h"
#include "tests/fake_cuda/kernel_launch.h"
#include "tests/fake_cuda/multiprocessor.h"

using fullbore::cuda::FunctionHandle;
using fullbore::cuda::ModuleHandle;
using fullbore::cuda::StreamHandle;
using fullbore::fake_cuda::Entry;
using fullbore::fake_cuda::Function;
using fullbore::fake_cuda::machine;
using fullbore::fake_cuda::Module;
using fullbore::fake_cuda::registers_of;
using fullbore::fake_cuda::Stream;
namespace cuda = fullbore::cuda;
namespace ptx = fullbore::ptx;

namespace fullbore::fake_cuda {

int refusal_of(const Function& function, ptx::Extent grid) {
  return grid.x % function.kernel->cluster == 0 ? cuda::kSuccess : kInvalidClusterSize;
}

std::function<void()> launch_of(Function& function, ptx::Extent grid, ptx::Extent block,
                                unsigned shared_bytes, void** arguments) {
  constexpr uint32_t kMostRows = 65535;
  const ptx::Kernel& kernel = *function.kernel;
  if (grid.count() == 0 || block.count() == 0 ||
      block.count() > static_cast<uint64_t>(kernel.most_threads) || grid.y > kMostRows ||
      grid.z > kMostRows || block.z > 64 || refusal_of(function, grid) != cuda::kSuccess ||
      shared_bytes > function.most_dynamic_shared_bytes ||
      kernel.shared_bytes + shared_bytes > machine().told.shared_bytes)
    return {};
  ptx::Launch launch{.kernel = &kernel,
                     .grid = grid,
                     .block = block,
                     .dynamic_shared_bytes = shared_bytes,
                     .parameters = {}};
  launch.parameters.resize(static_cast<size_t>(kernel.parameter_bytes));
  for (size_t i = 0; i < kernel.parameters.size(); ++i)
    std::memcpy(launch.parameters.data() + kernel.parameters[i].offset, arguments[i],
                static_cast<size_t>(kernel.parameters[i].bytes));
  if (function.is_hollow) return [] {};
  return [launch, card = function.card]() mutable {
    launch.seed = machine().random();
    launch.set_condition = [](uint64_t condition, uint32_t value) {
      return machine().set_condition(condition, value);
    };
    FakeCuda& told = machine().told;
    ++told.launches;
    try {
      told.instructions += ptx::run(launch, card->memory).instructions;
    } catch (const ptx::Fault& fault) {
      const std::string text = fault.what();
      const bool is_address = text.find("are in no allocation") != std::string::npos;
      machine().fail(is_address ? cuda::kIllegalAddress : cuda::kLaunchFailed, text);
    }
  };
}

}  // namespace fullbore::fake_cuda

namespace {

Function& function_of(FunctionHandle handle) { return *reinterpret_cast<Function*>(handle); }

}  // namespace

extern "C" {

int cuModuleGetFunction(FunctionHandle* handle, ModuleHandle of, const char* name) {
  const Entry entry("cuModuleGetFunction");
  if (entry.code() != 0) return entry.code();
  auto& module = *reinterpret_cast<Module*>(of);
  const auto kernel = module.code.kernels.find(name);
  if (kernel == module.code.kernels.end()) return cuda::kNotFound;
  std::unique_ptr<Function>& function = module.functions[name];
  if (!function) {
    function = std::make_unique<Function>();
    function->kernel = &kernel->second;
    function->card = module.card;
    function->is_hollow = module.is_hollow;
    function->most_dynamic_shared_bytes -= kernel->second.shared_bytes;
  }
  *handle = reinterpret_cast<FunctionHandle>(function.get());
  return 0;
}

int cuFuncSetAttribute(FunctionHandle handle, int attribute, int value) {
  const Entry entry("cuFuncSetAttribute");
  if (entry.code() != 0) return entry.code();
  Function& function = function_of(handle);
  if (attribute != cuda::kFunctionMostDynamicSharedBytes ||
      function.kernel->shared_bytes + value > machine().told.shared_bytes)
    return cuda::kInvalidValue;
  function.most_dynamic_shared_bytes = value;
  return 0;
}

int cuFuncGetAttribute(int* value, int attribute, FunctionHandle handle) {
  const Entry entry("cuFuncGetAttribute");
  if (entry.code() != 0) return entry.code();
  const ptx::Kernel& kernel = *function_of(handle).kernel;
  switch (attribute) {
    case cuda::kFunctionSharedBytes: *value = static_cast<int>(kernel.shared_bytes); return 0;
    case cuda::kFunctionLocalBytes: *value = static_cast<int>(kernel.local_bytes); return 0;
    case cuda::kFunctionRegisters: *value = registers_of(kernel); return 0;
    default: return cuda::kInvalidValue;
  }
}

int cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, FunctionHandle handle, int threads,
                                                size_t dynamic_shared_bytes) {
  const Entry entry("cuOccupancyMaxActiveBlocksPerMultiprocessor");
  if (entry.code() != 0) return entry.code();
  if (threads <= 0 || threads > 1024) return cuda::kInvalidValue;
  const FakeCuda& told = machine().told;
  *blocks = fullbore::fake_cuda::resident_blocks(
      *function_of(handle).kernel, threads, static_cast<int64_t>(dynamic_shared_bytes),
      told.capability, told.shared_bytes + fullbore::fake_cuda::kReservedSharedBytes);
  return 0;
}

int cuLaunchKernel(FunctionHandle handle, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                   unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                   StreamHandle stream, void** arguments, void**) {
  const Entry entry("cuLaunchKernel");
  if (entry.code() != 0) return entry.code();
  const int refusal =
      fullbore::fake_cuda::refusal_of(function_of(handle), {grid_x, grid_y, grid_z});
  if (refusal != 0) return refusal;
  auto launch =
      fullbore::fake_cuda::launch_of(function_of(handle), {grid_x, grid_y, grid_z},
                                     {block_x, block_y, block_z}, shared_bytes, arguments);
  if (!launch) return cuda::kInvalidValue;
  machine().enqueue(*reinterpret_cast<Stream*>(stream), std::move(launch));
  return 0;
}

}  // extern "C"
