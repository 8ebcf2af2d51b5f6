#pragma once
#include <cstdint>
#include <string>

namespace fullbore {

/// What of a run decides how much memory its process takes beside the plan.
struct ProcessShape {
  int64_t nodes = 0;       ///< of all graphs that are compiled, loop bodies included, before passes
  int64_t workers = 1;     ///< threads of the step
  int64_t processors = 1;  ///< threads that compile: available_processors()
  int64_t loaders = 1;     ///< threads that fill batches, of training and of evaluation
  int64_t batch_bytes = 0;  ///< of all batches that loaders keep
  int64_t data_bytes = 0;   ///< of tables that the opened data keep in memory: heap_bytes()
  bool saves_in_background = false;
};

/// Bytes resident beside the plan's State and arena: bounds from above, by kind. They hold for the process's whole
/// life, the compilation of every kernel included.
struct ProcessMemory {
  int64_t program_bytes =
      0;  ///< code and constants of the command and of its libraries, LLVM's most of all
  int64_t compile_bytes = 0;  ///< graphs, plans, the code generator's heap, kernels
  int64_t thread_bytes = 0;   ///< stacks, and what the allocator keeps for each thread
  int64_t batch_bytes = 0;    ///< batches made ahead
  int64_t save_bytes = 0;     ///< buffers of checkpoints and metrics
  int64_t data_bytes = 0;     ///< tables of the data, and as much again for orders drawn from them

  int64_t bytes() const {
    return program_bytes + compile_bytes + thread_bytes + batch_bytes + save_bytes + data_bytes;
  }
};

/// The bounds' constants were measured: tools/campaigns/resident_memory.py checks them.
ProcessMemory process_memory(const ProcessShape& shape);

/// "96.0 MiB: program 72.0 MiB, compiling 12.0 MiB, threads ..."
std::string text(const ProcessMemory& memory);

/// Bytes that this process has allocated, rounded up to whole 4 MiB so that equal runs find equal numbers; 0 where
/// the allocator does not tell.
int64_t heap_bytes();

}  // namespace fullbore
