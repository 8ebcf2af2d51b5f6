#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fullbore/device/device.h"

namespace fullbore {

/// A node that asks for a kernel, and what came of it.
class KernelRequest {
 public:
  KernelRequest(const Graph& graph, const Node& node, int workers)
      : graph_(graph), node_(node), workers_(workers) {}

  const Graph& graph() const { return graph_; }
  const Node& node() const { return node_; }
  int workers() const { return workers_; }
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
  std::string reason_;
};

/// One way to run a kind of node on the processor.
struct KernelMaker {
  std::string_view op;    ///< the op it is for
  std::string_view name;  ///< of the kernel: "panel"
  /// The kernel, or null after request.decline(why).
  std::unique_ptr<Kernel> (*make)(KernelRequest& request);
};

/// The kernels written by hand, for each op best first. What is not here, or declines, is compiled
/// from kernel IR.
const std::vector<KernelMaker>& kernel_list();

}  // namespace fullbore
