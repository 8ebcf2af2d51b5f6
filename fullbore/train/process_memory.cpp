#include "fullbore/train/process_memory.h"

#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>

#include "fullbore/base/text.h"

namespace fullbore {
namespace {

constexpr int64_t kKiB = 1 << 10;
constexpr int64_t kMiB = 1 << 20;

// Pages of files: 50 MiB after the start, 71 once kernels of all kinds have been compiled.
constexpr int64_t kProgramBytes = 76 * kMiB;
// Heap of what every run has: configuration, ops, device, LLVM's tables.
constexpr int64_t kCompileBytes = 12 * kMiB;
// Graph, plan, launches, object code and its copy in the kernel cache.
constexpr int64_t kNodeBytes = 4 * kKiB;
// LLVM's context and code generator of a thread that compiles.
constexpr int64_t kCompilerBytes = 6 * kMiB;
constexpr int64_t kThreadBytes = 256 * kKiB;
// Threads that sample sensors and serve metrics.
constexpr int64_t kWatchers = 3;
constexpr int64_t kSaveBytes = 4 * kMiB;
// What every run has allocated before its data are opened, which kCompileBytes counts already, is less than one.
constexpr int64_t kHeapUnit = 4 * kMiB;

}  // namespace

ProcessMemory process_memory(const ProcessShape& shape) {
  ProcessMemory memory;
  memory.program_bytes = kProgramBytes;
  memory.compile_bytes =
      kCompileBytes + shape.nodes * kNodeBytes + shape.processors * kCompilerBytes;
  memory.thread_bytes =
      (shape.workers + shape.loaders + (shape.saves_in_background ? 1 : 0) + kWatchers) *
      kThreadBytes;
  memory.batch_bytes = shape.batch_bytes;
  memory.save_bytes = kSaveBytes;
  memory.data_bytes = 2 * std::max<int64_t>(0, shape.data_bytes - kHeapUnit);
  return memory;
}

std::string text(const ProcessMemory& memory) {
  const auto size = [](int64_t bytes) { return bytes_text(static_cast<double>(bytes)); };
  return fmt::format("{}: program {}, compiling {}, threads {}, batches {}, saving {}, data {}",
                     size(memory.bytes()), size(memory.program_bytes), size(memory.compile_bytes),
                     size(memory.thread_bytes), size(memory.batch_bytes), size(memory.save_bytes),
                     size(memory.data_bytes));
}

int64_t heap_bytes() {
  const struct mallinfo2 heap = mallinfo2();
  const auto bytes = static_cast<int64_t>(heap.uordblks + heap.hblkhd);
  return (bytes + kHeapUnit - 1) / kHeapUnit * kHeapUnit;
}

}  // namespace fullbore
