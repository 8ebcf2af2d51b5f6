#include "fullbore/device/cuda/executor/library_calls.h"

#include <fmt/format.h>

#include "fullbore/base/check.h"
#include "fullbore/device/cuda/cublaslt/matmuls.h"
#include "fullbore/device/cuda/executor/launchable_graph.h"

namespace fullbore::cuda {
namespace {

Address address_of(const Argument& argument, std::span<const Place> operands) {
  if (argument.operand < 0) return {};  // there is no c
  const auto operand = static_cast<size_t>(argument.operand);
  if (operand == operands.size()) return {};  // no scratch is wanted
  FB_CHECK(operand < operands.size(), "a library's call wants operand {} of {}", operand,
           operands.size());
  return operands[operand].address + argument.offset;
}

MatmulAddresses addresses_of(const LibraryCall& call, std::span<const Place> operands) {
  return {.a = address_of(call.a, operands),
          .b = address_of(call.b, operands),
          .c = address_of(call.c, operands),
          .y = address_of(call.y, operands),
          .workspace = address_of(call.workspace, operands)};
}

}  // namespace

void tell_call(const LoadedKernel& kernel, std::span<const Place> operands, StreamHandle stream) {
  const LibraryCall& call = *kernel.node->library();
  call.matmul->tell(addresses_of(call, operands), stream, kernel.node->node());
}

std::unique_ptr<OwnedGraph> captured_call(const std::shared_ptr<Context>& context,
                                          const KernelCall& call) {
  const LibraryCall& library = *call.kernel->node->library();
  return std::make_unique<OwnedGraph>(
      context,
      library.matmul->capture(addresses_of(library, call.operands), call.kernel->node->node()));
}

void throw_call_failure(const char* call, int code, const LoadedKernel& kernel) {
  const std::string text = fmt::format("what cuBLASLt made of {} failed: {}: {}",
                                       kernel.node->node(), call, result_text(code));
  if (code == kOutOfMemory) throw MemoryError(text);
  throw DeviceError(text);
}

}  // namespace fullbore::cuda
