#include "fullbore/device/kernel_ir/overlay.h"

#include <algorithm>

#include "fullbore/ir/op_def.h"

namespace fullbore::jit {
namespace {

bool overlays(const KernelIr& kernel, int input, int output) {
  const Access* written = nullptr;
  for (const Store& store : kernel.stores) {
    if (store.access.buffer != output) continue;
    if (written != nullptr) return false;
    written = &store.access;
  }
  const KernelBuffer& source = kernel.buffers[static_cast<size_t>(input)];
  const KernelBuffer& target = kernel.buffers[static_cast<size_t>(output)];
  if (written == nullptr || source.elements != target.elements ||
      dtype_bytes(source.dtype) != dtype_bytes(target.dtype))
    return false;
  for (const Symbol& symbol : kernel.symbols)
    if (symbol.buffer == input) return false;
  return std::all_of(
      kernel.instructions.begin(), kernel.instructions.end(), [&](const Instruction& instruction) {
        return instruction.kind != Instruction::Kind::load || instruction.access.buffer != input ||
               (instruction.access.address == written->address && instruction.access.divisor == 1);
      });
}

}  // namespace

bool overlays(const LoweredPiece& piece, int input, int output) {
  const std::vector<int>& used = piece.buffers;
  const auto read = std::find(used.begin(), used.end(), input);
  const auto written = std::find(used.begin(), used.end(), output);
  return read != used.end() && written != used.end() &&
         overlays(piece.kernel, static_cast<int>(read - used.begin()),
                  static_cast<int>(written - used.begin()));
}

std::string ops_text(std::span<const Node> nodes) {
  std::string ops;
  for (const Node& node : nodes)
    if (!node.op->is(Tag::source) && !node.op->is(Tag::identity))
      ops += (ops.empty() ? "" : ",") + std::string(node.op->name);
  return ops;
}

}  // namespace fullbore::jit
