#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "fullbore/ir/graph.h"
#include "fullbore/ir/target.h"

namespace fullbore {

/// One compiled node, as the planner sees it. Launched by the device that compiled it alone, which knows the class
/// behind it. Immutable: what changes from launch to launch lies in scratch memory.
class Kernel {
 public:
  virtual ~Kernel() = default;

  /// Rough cost of the whole launch on one worker, in nanoseconds.
  virtual double nanoseconds() const = 0;
  /// Scratch that the planner places in the arena, passed as the last operand; 0 for none.
  virtual int64_t scratch_bytes(int workers) const {
    (void)workers;
    return 0;
  }
  /// May output `output` occupy the very bytes of input `input`? True only if each element is read before it is
  /// written.
  virtual bool may_alias(int input, int output) const {
    (void)input;
    (void)output;
    return false;
  }
  /// "jit tanh,mul f32 [768x512]": for plans and profiles.
  virtual std::string description() const = 0;
};

/// A kernel that could not be made. The node's reference runs in its place: the same values to rounding, far slower.
struct KernelFallback {
  std::string node;      ///< "tanh,mul f32[768, 512] in layer0.mlp"
  std::string location;  ///< line of the model; "" where none is known
  std::string reason;
  bool operator==(const KernelFallback&) const = default;
};

/// Lowers the nodes of one program to kernels. Control flow (loops), aliases (Tag::identity) and memory are not its
/// business but the planner's and the recorder's. A device may be asked for several at once, one for each thread that
/// prepares a program.
class Compiler {
 public:
  virtual ~Compiler() = default;
  /// Before any compile(), once for each program: what passes are told. Without it, the device's own target.
  virtual void compile_for(const Target& target) { (void)target; }
  /// A primitive, a `fused` node, or a composite that the device supports natively. Throws UsageError naming the op
  /// and dtype if there is no kernel. `workers`: those of the thread group that will launch it.
  virtual std::unique_ptr<Kernel> compile(const Graph& graph, const Node& node, int workers) = 0;
  /// Called once, after the last compile(): kernels may be launched from now on. Lets a device compile all kernels of a
  /// program as one module, in parallel, or find them in its cache.
  virtual void finish() {}
  /// After finish(): nodes without a kernel of their own, in the order in which they were asked for.
  virtual std::vector<KernelFallback> fallbacks() const { return {}; }
  /// Likewise, a line each: what the target asks for and the kernels do otherwise, to the same values but for rounding.
  virtual std::vector<std::string> notices() const { return {}; }
};

}  // namespace fullbore
