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

int run(char** program) {
  execv(program[0], program);
  fmt::print(stderr, "at_level: cannot run {}\n", program[0]);
  return 1;
}

/// Of `level`, a name of processor_level_name() or avx-vnni, whose dot products AVX2's processors have or lack.
int run_emulated(const char* folder, const char* level, char** program) {
  const Processor& machine = machine_processor();
  const std::optional<ProcessorLevel> known = processor_level_of(level);
  if (known ? machine.level >= *known : machine.avx_vnni) {
    fmt::print("not run: this machine has {} itself\n", level);
    return 77;
  }
  if (machine.level < ProcessorLevel::avx2 || this_processor().level != machine.level) {
    fmt::print("not run: {} is emulated by AVX2, at the machine's own level\n", level);
    return 77;
  }
  setenv("LD_LIBRARY_PATH", folder, 1);
  setenv("FB_EMULATED_LEVEL", level, 1);
  return run(program);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc >= 5 && std::string_view(argv[1]) == "--emulated")
    return run_emulated(argv[2], argv[3], argv + 4);
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
