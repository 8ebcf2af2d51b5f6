#include "fullbore/base/processor.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>

#include "fullbore/base/error.h"
#include "fullbore/base/text.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace fullbore {
namespace {

#if defined(__x86_64__)
constexpr std::array kLevels = {ProcessorLevel::baseline, ProcessorLevel::avx2,
                                ProcessorLevel::avx512, ProcessorLevel::avx512_bf16,
                                ProcessorLevel::amx};
#else
constexpr std::array kLevels = {ProcessorLevel::baseline};
#endif
constexpr const char* kVariable = "FULLBORE_PROCESSOR";
#if defined(__x86_64__)
constexpr std::string_view kBaselineLevel = "x86-64-v2";
#elif defined(__aarch64__)
constexpr std::string_view kBaselineLevel = "arm64";
#else
constexpr std::string_view kBaselineLevel = "portable";
#endif

#if defined(__x86_64__)
/// Leaf 7 of CPUID, for what GCC 12's builtin does not know. (Intel 64 Software Developer's Manual, volume 2A.)
struct Leaf7 {
  unsigned int eax = 0, ebx = 0, ecx = 0, edx = 0;
  explicit Leaf7(unsigned int part) {
    if (__get_cpuid_count(7, part, &eax, &ebx, &ecx, &edx) == 0) eax = ebx = ecx = edx = 0;
  }
};

/// Linux gives tile registers to a process that asks (Documentation/arch/x86/xstate.rst).
bool may_use_tiles() {
  constexpr long kRequestPermission = 0x1023;
  constexpr long kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

// The builtin also asks whether the operating system saves the registers.
Processor find_processor() {
  __builtin_cpu_init();
  Processor found;
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return found;
  found.level = ProcessorLevel::avx2;
  found.vector_unit = VectorUnit::avx2;
  found.avx_vnni = (Leaf7(1).eax >> 4 & 1U) != 0;
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
      !__builtin_cpu_supports("avx512dq") || !__builtin_cpu_supports("avx512vl"))
    return found;
  found.level = ProcessorLevel::avx512;
  found.vector_unit = VectorUnit::avx512;
  found.avx512_vnni = __builtin_cpu_supports("avx512vnni") != 0;
  if (!__builtin_cpu_supports("avx512bf16")) return found;
  found.level = ProcessorLevel::avx512_bf16;
  found.avx512_bf16 = true;
  const Leaf7 leaf(0);
  if ((leaf.edx >> 22 & 1U) == 0 || (leaf.edx >> 24 & 1U) == 0 || !may_use_tiles()) return found;
  found.level = ProcessorLevel::amx;
  found.amx_bf16 = true;
  return found;
}
#else
Processor find_processor() { return {}; }
#endif

/// What each processor of a level has.
Processor of_level(ProcessorLevel level) {
  Processor processor;
  processor.level = level;
  processor.lowered = true;
  processor.vector_unit = level >= ProcessorLevel::avx512 ? VectorUnit::avx512
                          : level >= ProcessorLevel::avx2 ? VectorUnit::avx2
                                                          : VectorUnit::baseline;
  processor.avx512_bf16 = processor.avx512_vnni = level >= ProcessorLevel::avx512_bf16;
  processor.amx_bf16 = level >= ProcessorLevel::amx;
  return processor;
}

ProcessorLevel checked_level(std::string_view name, std::string_view key) {
  const std::vector<std::string> names = processor_names();
  if (name == "auto") return machine_processor().level;
  const std::optional<ProcessorLevel> level = processor_level_of(name);
  if (!level)
    throw UsageError(fmt::format("{}: '{}' is none of {}.{}", key, name, fmt::join(names, ", "),
                                 did_you_mean(name, names)));
  if (*level > machine_processor().level)
    throw UsageError(fmt::format(
        "{}: {} was asked for, and this machine has {} at most: levels are only lowered", key, name,
        processor_level_name(machine_processor().level)));
  return *level;
}

ProcessorLevel environment_level() {
  const char* name = std::getenv(kVariable);
  return name == nullptr || *name == '\0' ? machine_processor().level
                                          : checked_level(name, kVariable);
}

std::atomic<ProcessorLevel>& current_level() {
  static std::atomic<ProcessorLevel> level = environment_level();
  return level;
}

}  // namespace

std::string_view processor_level_name(ProcessorLevel level) {
  switch (level) {
    case ProcessorLevel::baseline: return kBaselineLevel;
    case ProcessorLevel::avx2: return "avx2";
    case ProcessorLevel::avx512: return "avx512";
    case ProcessorLevel::avx512_bf16: return "avx512-bf16";
    case ProcessorLevel::amx: return "amx";
  }
  return "";
}

std::span<const ProcessorLevel> processor_levels() { return kLevels; }

std::vector<std::string> processor_names() {
  std::vector<std::string> names = {"auto"};
  for (const ProcessorLevel level : kLevels) names.emplace_back(processor_level_name(level));
  return names;
}

std::optional<ProcessorLevel> processor_level_of(std::string_view name) {
  const auto found = std::ranges::find(kLevels, name, processor_level_name);
  return found == kLevels.end() ? std::nullopt : std::optional(*found);
}

const Processor& machine_processor() {
  static const Processor processor = find_processor();
  return processor;
}

Processor this_processor() {
  const ProcessorLevel level = current_level();
  return level == machine_processor().level ? machine_processor() : of_level(level);
}

void limit_processor(std::string_view name, std::string_view key) {
  current_level() = std::min(checked_level(name, key), environment_level());
}

}  // namespace fullbore
