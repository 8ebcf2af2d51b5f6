#pragma once
#include "fullbore/device/cpu/gemm/contraction.h"

namespace fullbore::cpu {

/// Columns of a block that is prepacked for tiles: two tiles, whose VNNI pairs are two lines of memory.
inline constexpr int64_t kAmxColumns = 32;
/// Depth of a step: a row of a tile.
inline constexpr int64_t kAmxDepth = 32;

/// Few rows times a prepacked matrix of bf16, as decoding has them: by the processor's tiles, from blocks that are read once,
/// each asked for while the one before it is multiplied. Bound: the bytes of the matrix.
std::unique_ptr<Kernel> make_amx_matmul(KernelRequest& request);
/// The same for tests; null, with a reason, if it is not for such operands or this processor has no tiles for bf16.
std::unique_ptr<Kernel> make_amx_matmul(const Contraction& contraction, std::string* why_not);

}  // namespace fullbore::cpu
