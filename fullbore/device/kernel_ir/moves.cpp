#include "fullbore/device/kernel_ir/moves.h"

namespace fullbore::jit {

using Kind = Instruction::Kind;

bool moves_only(const KernelIr& kernel) {
  for (const Instruction& instruction : kernel.instructions) switch (instruction.kind) {
      case Kind::load:
      case Kind::inside:
      case Kind::index: break;
      case Kind::constant:
        if (instruction.value != 0) return false;
        break;
      case Kind::scalar:
        if (is_low_precision(instruction.dtype) && instruction.op != ScalarOp::select) return false;
        for (int operand : instruction.operands)
          if (is_low_precision(kernel.instructions[static_cast<size_t>(operand)].dtype) &&
              instruction.op != ScalarOp::select)
            return false;
        break;
      case Kind::reduce:
      case Kind::scan:
        if (is_low_precision(instruction.dtype)) return false;
        break;
    }
  for (const Store& store : kernel.stores)
    if (kernel.buffers[static_cast<size_t>(store.access.buffer)].dtype !=
        kernel.instructions[static_cast<size_t>(store.value)].dtype)
      return false;
  for (const Instruction& instruction : kernel.instructions)
    if (instruction.kind == Kind::index && is_low_precision(instruction.dtype)) return false;
  return true;
}

}  // namespace fullbore::jit
