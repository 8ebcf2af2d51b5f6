#pragma once
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "fullbore/base/dtype.h"
#include "fullbore/device/kernel.h"

// What a program needs that brings kernels of its own for the CPU. The only header of this device that others may
// include.

namespace fullbore {

/// A kernel that this device launches. Runs on any number of workers at once over disjoint ranges.
class CpuKernel : public Kernel {
 public:
  /// Independent equal parts of the work. The decomposition does not depend on the number of workers, so neither do
  /// the bits of the result.
  virtual int64_t items() const = 0;
  /// Operands: the node's inputs, its outputs, scratch if any. Whole buffers are 64-byte aligned, rows of a loop's
  /// sliced or stacked operands only to their element: use unaligned accesses. Scratch is shared by all workers: a
  /// kernel divides it by item or by worker itself. Called with 0 <= begin < end <= items(). Must not allocate, throw
  /// or lock.
  ///
  /// nanoseconds(): below a few microseconds a launch is not worth spreading over workers.
  virtual void run(void* const* operands, int64_t begin, int64_t end, int worker) const = 0;
};

/// A node that asks for a kernel, and what came of it.
class KernelRequest {
 public:
  KernelRequest(const Graph& graph, const Node& node, int workers, bool row_invariant = false)
      : graph_(graph), node_(node), workers_(workers), row_invariant_(row_invariant) {}

  const Graph& graph() const { return graph_; }
  const Node& node() const { return node_; }
  int workers() const { return workers_; }
  /// Must the bits of a row not depend on how many rows there are? (Target::row_invariant)
  bool row_invariant() const { return row_invariant_; }
  const TensorType& input(size_t index) const { return graph_.type(node_.inputs[index]); }
  const TensorType& output(size_t index = 0) const { return graph_.type(node_.outputs[index]); }
  template <class T>
  const T& attribute(std::string_view name) const {
    return node_.attributes.get<T>(name);
  }

  /// Does a node or an output of the graph read the result? A kernel need not make one that nobody reads.
  bool is_read(size_t output) const;
  /// Is every element of the operand 0, as its producers say? A kernel need not look at one that is.
  bool is_zero(size_t input) const;

  /// For `return request.decline("needs f32");`: notes the reason, makes no kernel.
  std::unique_ptr<Kernel> decline(std::string reason) {
    reason_ = std::move(reason);
    return nullptr;
  }
  const std::string& reason() const { return reason_; }

 private:
  const Graph& graph_;
  const Node& node_;
  int workers_;
  bool row_invariant_;
  std::string reason_;
};

/// One way to run a kind of node on the processor.
struct KernelMaker {
  std::string_view op;    ///< the op it is for
  std::string_view name;  ///< of the kernel: "tiled"
  /// The kernel, or null after request.decline(why). Called by several threads at once.
  std::unique_ptr<Kernel> (*make)(KernelRequest& request);
};

/// Adds a kernel from outside the tree, which is asked before the device's own. Of a composite op it is used for
/// `composite_dtypes` of the first operand: for others the op is decomposed. Before any device is opened; a static
/// variable of type RegisteredCpuKernel does that. Names stay where they are: literals.
void register_cpu_kernel(const KernelMaker& maker, std::set<DType> composite_dtypes = {});

struct RegisteredCpuKernel {
  explicit RegisteredCpuKernel(const KernelMaker& maker, std::set<DType> composite_dtypes = {}) {
    register_cpu_kernel(maker, std::move(composite_dtypes));
  }
};

}  // namespace fullbore
