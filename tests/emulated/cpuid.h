// Stands before the compiler's <cpuid.h> where fullbore/base/processor.cpp is compiled for the library of emulated
// instructions: the processor then has those of the level that FB_EMULATED_LEVEL names, as engine.processor does, or of AVX2
// and its dot products of bytes ("avx-vnni").
#pragma once
#include_next <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace fullbore::emulated {

inline std::string_view level() {
  const char* name = std::getenv("FB_EMULATED_LEVEL");
  return name == nullptr ? "avx2" : name;
}
inline bool supports(std::string_view feature) {
  if (!feature.starts_with("avx512")) return feature == "avx2" || feature == "fma";
  const bool newer = level() == "avx512-bf16" || level() == "amx";
  return feature == "avx512vnni" || feature == "avx512bf16" ? newer : newer || level() == "avx512";
}
inline int leaf(unsigned int part, unsigned int* eax, unsigned int* edx) {
  *eax = part == 1 && level() == "avx-vnni" ? 1U << 4 : 0;
  *edx = part == 0 && level() == "amx" ? 1U << 22 | 1U << 24 : 0;
  return 1;
}
/// What the system is asked for tiles by.
inline long granted(long, long, long) { return 0; }

}  // namespace fullbore::emulated

#define __builtin_cpu_supports(feature) fullbore::emulated::supports(feature)
#define __get_cpuid_count(number, part, eax, ebx, ecx, edx) fullbore::emulated::leaf(part, eax, edx)
#define syscall(...) fullbore::emulated::granted(__VA_ARGS__)
