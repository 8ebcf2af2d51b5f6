// Runs a program at one processor level, for ctest: at_level LEVEL PROGRAM [ARGUMENT ...]
// With exit code 77, which ctest lists as skipped, where there is nothing to run: the machine lacks the level, or it is
// the one at which the program's own entry runs, the machine's own or that of FULLBORE_PROCESSOR.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <optional>

#include "fullbore/base/processor.h"

int main(int argc, char** argv) {
  using namespace fullbore;
  if (argc < 3) {
    fmt::print(stderr, "usage: at_level LEVEL PROGRAM [ARGUMENT ...]\n");
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
  execv(argv[2], argv + 2);
  fmt::print(stderr, "at_level: cannot run {}\n", argv[2]);
  return 1;
}
