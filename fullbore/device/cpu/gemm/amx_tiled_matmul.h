#pragma once
#include "fullbore/device/cpu/gemm/contraction.h"

namespace fullbore::cpu {

/// Any matmul or matmul_add of bf16, summed in f32, by the processor's tiles: b is copied into blocks of VNNI pairs, and a too where its
/// rows do not lie in whole tiles. An item is a tile of the result; each of its elements is one sum along depth, in the same
/// order however tiles are cut and shared out.
std::unique_ptr<Kernel> make_amx_tiled_matmul(KernelRequest& request);
/// The same for tests; null, with a reason, if it is not for such operands or this processor has no tiles for bf16.
std::unique_ptr<Kernel> make_amx_tiled_matmul(const Contraction& contraction, std::string* why_not);

}  // namespace fullbore::cpu
