#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "fullbore/ir/graph.h"
#include "fullbore/ir/target.h"

namespace fullbore {

/// One compiled node. Immutable; runs on any number of workers at once over disjoint ranges.
class Kernel {
 public:
  virtual ~Kernel() = default;

  /// Independent equal parts of the work. The decomposition does not depend on the number of
  /// workers, so neither do the bits of the result.
  virtual int64_t items() const = 0;
  /// Rough cost of all items on one worker, in nanoseconds: below a few microseconds a launch is
  /// not worth spreading over workers.
  virtual double nanoseconds() const = 0;
  /// Scratch that the planner places in the arena, passed as the last buffer; 0 for none. Shared by
  /// all workers: a kernel divides it by item or by worker itself.
  virtual int64_t scratch_bytes(int workers) const {
    (void)workers;
    return 0;
  }
  /// May output `output` occupy the very bytes of input `input`? True only if each element is read
  /// (by its own item) before it is written.
  virtual bool may_alias(int input, int output) const {
    (void)input;
    (void)output;
    return false;
  }
  /// Buffers: the node's inputs, its outputs, scratch if any. Whole buffers are 64-byte aligned, rows
  /// of a loop's stacked or sliced operands only to their element: use unaligned accesses. Called with
  /// 0 <= begin < end <= items(). Must not allocate, throw or lock.
  virtual void run(void* const* buffers, int64_t begin, int64_t end, int worker) const = 0;

  /// "jit tanh,mul f32 [768x512]": for plans and profiles.
  virtual std::string description() const = 0;
};

/// Lowers nodes to kernels. Control flow (loops), aliases (Tag::identity) and memory are not its
/// business but the planner's and the runtime's.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual Target target() const = 0;
  /// Compiles one node: a primitive, a `fused` node, or a claimed composite. Throws UsageError
  /// naming the op and dtype if there is no kernel. `workers` is the team's size.
  virtual std::unique_ptr<Kernel> compile(const Graph& graph, const Node& node, int workers) = 0;
  /// Called once after the last compile() of a program: code generated so far becomes runnable.
  /// Lets a backend compile all kernels of a program as one module, in parallel, or from its cache.
  virtual void finish() {}
};

std::unique_ptr<Backend> make_cpu_backend();
/// Everything but the arithmetic: kernels that touch nothing. For tests of plans and schedules.
std::unique_ptr<Backend> make_null_backend();
/// By name, "cpu" or "null"; UsageError with the nearest name otherwise.
std::unique_ptr<Backend> make_backend(const std::string& name);

}  // namespace fullbore
