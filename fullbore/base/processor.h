#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fullbore {

/// Sets of instructions that code here is written for, each with all that the ones before it have. (System V ABI,
/// AMD64 supplement, "Micro-Architecture Levels", for the first three.) 64-bit ARM has the first alone.
enum class ProcessorLevel {
  baseline,  ///< x86-64: SSE 4.2, and any older processor runs the same code; ARM: ARMv8-A with its vectors (NEON)
  avx2,      ///< AVX2, FMA, F16C, BMI: x86-64-v3
  avx512,    ///< AVX-512 F, BW, CD, DQ, VL: x86-64-v4
  avx512_bf16,  ///< and its dot products of bf16 and of 8-bit integers (VNNI)
  amx           ///< and tiles of bf16 (AMX_TILE, AMX_BF16)
};

/// "x86-64-v2", "avx2", "avx512", "avx512-bf16", "amx", or on ARM "arm64": what engine.processor and
/// FULLBORE_PROCESSOR take.
std::string_view processor_level_name(ProcessorLevel level);
/// All of this family of processors, the lowest first.
std::span<const ProcessorLevel> processor_levels();
/// "auto" and the names of all.
std::vector<std::string> processor_names();
/// Of a name; none for another text.
std::optional<ProcessorLevel> processor_level_of(std::string_view name);

/// Vector registers that hand-written loops come for, in order of preference.
enum class VectorUnit { baseline, avx2, avx512 };
constexpr std::string_view vector_unit_name(VectorUnit unit) {
  switch (unit) {
    case VectorUnit::avx512: return "avx512";
    case VectorUnit::avx2: return "avx2";
    case VectorUnit::baseline: break;
  }
#if defined(__aarch64__)
  return "neon";
#else
  return "sse2";
#endif
}

/// What every choice of instructions follows from: code generation, matmuls, attention, recurrences,
/// random draws, int8, and the measured peaks.
struct Processor {
  ProcessorLevel level = ProcessorLevel::baseline;
  /// Is it less than the machine has? Then it has its level's instructions and no others.
  bool lowered = false;
  VectorUnit vector_unit = VectorUnit::baseline;
  /// AVX512_BF16 (or AMX, which implies it): bf16 contractions beat f32.
  bool avx512_bf16 = false;
  bool amx_bf16 = false;     ///< AMX_BF16
  bool avx512_vnni = false;  ///< AVX512_VNNI
  bool avx_vnni = false;     ///< AVX_VNNI, vectors of 32 bytes
  bool operator==(const Processor&) const = default;
};

/// What CPUID and the operating system say of this machine.
const Processor& machine_processor();

/// machine_processor(), or less: see limit_processor() and FULLBORE_PROCESSOR. Safe to call from any thread.
Processor this_processor();

/// From here on this_processor() has the level `name`, of processor_level_name(), or all that the machine has:
/// "auto". The environment variable FULLBORE_PROCESSOR, which takes the same names, is an upper bound
/// throughout. What was compiled before stays as it is. Throws UsageError, after `key`, of an unknown name and
/// of a level that the machine lacks: levels are only lowered.
void limit_processor(std::string_view name, std::string_view key);

}  // namespace fullbore
