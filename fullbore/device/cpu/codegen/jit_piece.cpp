#include "fullbore/device/cpu/codegen/jit_piece.h"

#include "fullbore/device/kernel_ir/loop_placement.h"

namespace fullbore::jit {

int64_t scratch_bytes(const KernelIr& kernel) {
  return (place_in_loops(kernel).slots * slot_bytes(kernel) + 63) / 64 * 64;
}

}  // namespace fullbore::jit
