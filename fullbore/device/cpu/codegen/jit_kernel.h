#pragma once
#include <memory>
#include <string>
#include <vector>

#include "fullbore/device/cpu/kernel.h"

namespace fullbore {

class Epilogue;
namespace jit {
class CodeStore;
}

/// Is there kernel IR for the node? If not, says why: "argsort is not lowered".
bool can_lower(const Graph& graph, const Node& node, std::string* why_not = nullptr);

/// "tanh,mul f32[768, 512] in layer0.mlp": a node for those who read of it.
std::string node_text(const Graph& graph, const Node& node);

/// While one lives, no code is made for nodes of this op, or in this scope. For tests of what happens then; one at a
/// time.
class PlantedCodeFailure {
 public:
  explicit PlantedCodeFailure(std::string op_or_scope);
  ~PlantedCodeFailure();
  PlantedCodeFailure(const PlantedCodeFailure&) = delete;
  PlantedCodeFailure& operator=(const PlantedCodeFailure&) = delete;
};

/// What became of the kernels of one compiler.
struct JitStatistics {
  int nodes = 0;    ///< add() calls
  int kernels = 0;  ///< pieces of code that they run: distinct kernel IR, extents left open
  int from_memory = 0;
  int from_disk = 0;
  int compiled = 0;  ///< by LLVM, in this finish()
  int failed = 0;    ///< pieces of code that there are not
  double lower_seconds = 0;
  double compile_seconds = 0;  ///< wall clock, all threads together
  double load_seconds = 0;     ///< cache and linker
};

/// Compiles nodes through kernel IR and LLVM. Kernels made by add() may run after finish().
class JitCompiler {
 public:
  /// Uses the process's store of code (this processor, cache_directory()), or another.
  explicit JitCompiler(jit::CodeStore* store = nullptr);
  ~JitCompiler();
  JitCompiler(const JitCompiler&) = delete;
  JitCompiler& operator=(const JitCompiler&) = delete;

  /// Before the first kernel: code that is soon made, however slow (CompileEffort::fast).
  void use_quick_code();
  /// Of the kernels that follow: their sums along lanes are made in one order (KernelIr::one_order).
  void set_row_invariant(bool on);
  /// The node's kernel; null, with the reason, if there is no kernel IR for it.
  std::unique_ptr<Kernel> add(const Graph& graph, const Node& node, int workers,
                              std::string* why_not = nullptr);
  /// What is behind the matmul of a `fused` node (ir/fused_matmul.h); null, with the reason, if there
  /// is no kernel IR for it.
  std::unique_ptr<Epilogue> add_epilogue(const Graph& graph, const Node& node,
                                         std::string* why_not = nullptr);
  /// `made`, the kernel of a node of the Epilogue that was added last; or, where its code cannot be made, the reference.
  std::unique_ptr<Kernel> with_reference(std::unique_ptr<Kernel> made, const Graph& graph,
                                         const Node& node) const;
  /// Makes all kernels added so far runnable: code from memory, from disk, or compiled now. Those whose code cannot be
  /// made run their node's reference from then on.
  void finish();
  /// Nodes with such kernels.
  std::vector<KernelFallback> fallbacks() const;
  const JitStatistics& statistics() const;

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace fullbore
