#pragma once
#include "fullbore/device/cpu/gemm/contraction.h"

namespace fullbore::cpu {

/// Matmuls by oneDNN, for processors with tiles for bf16 (AMX), which it has kernels for:
/// single-threaded calls, one per tile, from our own workers. No other processor reaches oneDNN, which
/// reads CPUID itself and knows nothing of this_processor().
///
/// Each call makes a handful of small allocations inside oneDNN (its stream, memory objects and table of
/// arguments), which no option of it avoids, and takes about a microsecond; where f32 does the arithmetic
/// anyway, the tiled kernels do neither and are as fast.
std::unique_ptr<Kernel> make_onednn_matmul(KernelRequest& request);

/// The same whatever the processor is good at, for tests and benchmarks. Extents must not be 0;
/// f32; or, with AVX-512, bf16 with a result in f32 or bf16.
std::unique_ptr<Kernel> make_onednn_matmul(const Contraction& contraction);

}  // namespace fullbore::cpu
