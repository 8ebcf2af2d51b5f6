#pragma once
#include <cstdint>

namespace fullbore::cpu {

/// A loop that does nothing but arithmetic, out of registers: what a core can do at most.
struct PeakKernel {
  const char* name;            ///< "avx512f fma"
  double flops_per_iteration;  ///< of one call of the loop's body
  /// Runs the body `iterations` times on the calling thread. The result depends on all of it, so
  /// that no compiler leaves any out.
  float (*run)(int64_t iterations);
};

/// The fastest fp32 multiply-add that this_processor() has; a portable loop at the least.
PeakKernel fp32_peak_kernel();
/// bf16 products accumulated in fp32 by instructions of the processor (AMX or AVX512-BF16). `run`
/// is null where there are none.
PeakKernel bf16_peak_kernel();

}  // namespace fullbore::cpu
