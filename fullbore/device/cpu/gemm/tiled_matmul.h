#pragma once
#include "fullbore/base/processor.h"
#include "fullbore/device/cpu/codegen/epilogue.h"
#include "fullbore/device/cpu/gemm/contraction.h"

namespace fullbore::cpu {

/// Matmuls of every floating dtype by the loops of a GemmUnit: bf16 and f16 are widened to
/// f32 on their way into packed blocks, and results rounded on their way out.
///
/// Work is cut into tiles of rows by a few blocks of columns. A worker that is given a range of tiles
/// copies the columns of b that they share once, into scratch of its own. Nothing is allocated, and
/// each element is summed in the same order however the tiles are shared out.
std::unique_ptr<Kernel> make_tiled_matmul(KernelRequest& request);

/// The same on a given unit, for tests; null if this processor lacks it.
std::unique_ptr<Kernel> make_tiled_matmul(const Contraction& contraction, VectorUnit unit);

/// Matmuls of bf16 by the processor's own dot products of VNNI pairs (AVX512_BF16), summed in f32: twice
/// the operations per instruction.
std::unique_ptr<Kernel> make_vnni_matmul(KernelRequest& request);
/// The same wherever there are such instructions, for tests; null if there are none.
std::unique_ptr<Kernel> make_vnni_matmul(const Contraction& contraction);

/// A matmul whose b is prepacked (the op prepacked_matmul): as the two above, to the bit, without the copies
/// of b. Null if the blocks are of VNNI pairs and there are no such instructions.
std::unique_ptr<Kernel> make_prepacked_matmul(KernelRequest& request);
std::unique_ptr<Kernel> make_prepacked_matmul(const Contraction& contraction, VectorUnit unit);

/// The prepacked operand (the op prepack).
std::unique_ptr<Kernel> make_prepack(KernelRequest& request);

/// The matmul of a `fused` node (ir/fused_matmul.h) and what is behind it, tile by tile: a tile stays in
/// the worker's scratch, or goes to its place if its values are a result too, and the epilogue reads it
/// there while it is in cache. By the fastest unit for the matmul's dtype.
std::unique_ptr<Kernel> make_matmul_with_epilogue(KernelRequest& request,
                                                  std::unique_ptr<Epilogue> epilogue);

/// Rows above which packing b pays.
inline constexpr int64_t kMostDotRows = 16;

/// Few rows times a transposed matrix (a token through a layer): sums along depth, with b read once
/// from where it lies.
std::unique_ptr<Kernel> make_dot_matmul(KernelRequest& request);
std::unique_ptr<Kernel> make_dot_matmul(const Contraction& contraction, VectorUnit unit);

}  // namespace fullbore::cpu
