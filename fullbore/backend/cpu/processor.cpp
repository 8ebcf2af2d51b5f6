#include "fullbore/backend/cpu/processor.h"

#include <cpuid.h>

namespace fullbore {
namespace {

// The builtin also asks whether the operating system saves the registers.
VectorUnit find_vector_unit() {
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    return VectorUnit::avx512;
  return avx2 ? VectorUnit::avx2 : VectorUnit::baseline;
}

// GCC 12's builtin does not know of AMX: leaf 7, bit 22 of EDX.
bool has_bf16_tiles() {
  unsigned int a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d & (1U << 22)) != 0;
}

}  // namespace

std::string_view vector_unit_name(VectorUnit unit) {
  switch (unit) {
    case VectorUnit::baseline: return "sse2";
    case VectorUnit::avx2: return "avx2";
    case VectorUnit::avx512: return "avx512";
  }
  return "";
}

const Processor& this_processor() {
  static const Processor processor = [] {
    Processor found;
    found.vector_unit = find_vector_unit();
    found.bf16_products =
        found.vector_unit == VectorUnit::avx512 && __builtin_cpu_supports("avx512bf16") != 0;
    found.bf16_tiles = found.bf16_products && has_bf16_tiles();
    return found;
  }();
  return processor;
}

}  // namespace fullbore
