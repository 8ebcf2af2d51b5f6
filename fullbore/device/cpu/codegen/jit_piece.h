#pragma once
#include <memory>
#include <string>
#include <vector>

#include "fullbore/device/cpu/codegen/code_store.h"
#include "fullbore/device/kernel_ir/lower.h"

namespace fullbore::jit {

/// Buffers of one kernel at most.
inline constexpr size_t kMostBuffers = 64;

/// Code of one kernel text, wanted by any number of kernels and filled in by JitCompiler::finish(); or why there is none.
struct Slot {
  std::string text;
  KernelIr kernel;
  std::shared_ptr<const Code> code = nullptr;
  std::string problem = {};
};

/// One kernel on some of a node's buffers.
struct Piece {
  std::shared_ptr<const Slot> slot;
  std::vector<int> buffers;  ///< of the node
  std::vector<int64_t> parameters;
  int64_t items = 0;

  void run(void* const* node_buffers, void* scratch, int64_t begin, int64_t end) const {
    void* own[kMostBuffers + 1];
    for (size_t i = 0; i < buffers.size(); ++i)
      own[i] = node_buffers[static_cast<size_t>(buffers[i])];
    own[buffers.size()] = scratch;
    slot->code->function()(own, parameters.data(), begin, end);
  }
};

/// Of one worker: whole cache lines, for workers write their own.
int64_t scratch_bytes(const KernelIr& kernel);

}  // namespace fullbore::jit
