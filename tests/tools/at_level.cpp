// Runs a program at one processor level, for ctest: at_level LEVEL PROGRAM [ARGUMENT ...]
// With exit code 77, which ctest lists as skipped, where there is nothing to run: the machine lacks the level, or it is
// the one at which the program's own entry runs, the machine's own or that of FULLBORE_PROCESSOR.
//
// at_level --emulated FOLDER LEVEL PROGRAM [ARGUMENT ...] runs it with the library in FOLDER (tests/emulated), in which
// kernels of LEVEL are computed by AVX2: where the machine has AVX2 and lacks the level.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <optional>
#include <string_view>

#include "fullbore/base/processor.h"

namespace {

using namespace fullbore;

constexpr const char* kEmulatedLevel = "FB_EMULATED_LEVEL";  // tests/emulated/cpuid.h

int run(char** program) {
  execv(program[0], program);
  fmt::print(stderr, "at_level: cannot run {}\n", program[0]);
  return 1;
}

/// argv: --emulated FOLDER LEVEL PROGRAM. Runs itself once more, with the library in FOLDER: where that is not found, the
/// tests would pass with the machine's own.
int run_emulated(char** argv) {
  const std::string_view level =
      argv[3];  // of processor_level_name(), or avx-vnni, which AVX2's processors have or lack
  const Processor& processor = machine_processor();
  const std::optional<ProcessorLevel> known = processor_level_of(level);
  const bool has = known ? processor.level >= *known : processor.avx_vnni;
  if (std::getenv(kEmulatedLevel) != nullptr) {
    if (has) return run(argv + 4);
    fmt::print(stderr, "at_level: the library of {} has no {}\n", argv[2], level);
    return 1;
  }
  if (has) {
    fmt::print("not run: this machine has {} itself\n", level);
    return 77;
  }
  if (processor.level < ProcessorLevel::avx2 || this_processor().level != processor.level) {
    fmt::print("not run: {} is emulated by AVX2, at the machine's own level\n", level);
    return 77;
  }
  const char* others = std::getenv("LD_LIBRARY_PATH");
  setenv("LD_LIBRARY_PATH",
         fmt::format("{}{}{}", argv[2], others ? ":" : "", others ? others : "").c_str(), 1);
  setenv(kEmulatedLevel, argv[3], 1);
  execv("/proc/self/exe", argv);
  fmt::print(stderr, "at_level: cannot run itself\n");
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc >= 5 && std::string_view(argv[1]) == "--emulated") return run_emulated(argv);
  if (argc < 3) {
    fmt::print(stderr, "usage: at_level [--emulated FOLDER] LEVEL PROGRAM [ARGUMENT ...]\n");
    return 2;
  }
  const std::optional<ProcessorLevel> level = processor_level_of(argv[1]);
  if (!level) {
    fmt::print(stderr, "at_level: there is no level '{}'\n", argv[1]);
    return 2;
  }
  if (*level > machine_processor().level) {
    fmt::print("not run: this machine lacks {}\n", argv[1]);
    return 77;
  }
  if (*level == this_processor().level) {
    fmt::print("not run again: the entry without a level runs at {} here\n", argv[1]);
    return 77;
  }
  setenv("FULLBORE_PROCESSOR", argv[1], 1);
  return run(argv + 2);
}
