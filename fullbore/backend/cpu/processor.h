#pragma once
#include <string_view>

namespace fullbore {

/// Vector instructions of the processor we run on, in order of preference.
enum class VectorUnit { baseline, avx2, avx512 };
std::string_view vector_unit_name(VectorUnit unit);

/// What CPUID says that kernels choose by.
struct Processor {
  VectorUnit vector_unit = VectorUnit::baseline;
  /// AVX512_BF16 (or AMX, which implies it): bf16 contractions beat f32.
  bool bf16_products = false;
  bool bf16_tiles = false;  ///< AMX_BF16, which oneDNN knows how to use
};
const Processor& this_processor();

}  // namespace fullbore
