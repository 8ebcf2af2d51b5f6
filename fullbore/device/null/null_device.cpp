#include <fmt/format.h>

#include "fullbore/device/device.h"
#include "fullbore/base/threads.h"
#include "fullbore/ir/op_def.h"

namespace fullbore {
namespace {

/// Has the items of a real kernel, so that workers, barriers and loops are exercised, and touches
/// no memory.
class NullKernel final : public Kernel {
 public:
  NullKernel(std::string_view op, int64_t items) : op_(op), items_(items) {}

  int64_t items() const override { return items_; }
  double nanoseconds() const override { return static_cast<double>(items_); }
  bool may_alias(int, int) const override { return false; }
  void run(void* const*, int64_t, int64_t, int) const override {}
  std::string description() const override { return fmt::format("null {}", op_); }

 private:
  std::string_view op_;
  int64_t items_;
};

class NullBackend final : public Backend {
 public:
  Target target() const override {
    Target target;
    target.name = "null";
    target.threads = available_processors();
    return target;
  }

  std::unique_ptr<Kernel> compile(const Graph& graph, const Node& node, int) override {
    const int64_t items = node.outputs.empty() ? 0 : graph.type(node.outputs[0]).elements();
    return std::make_unique<NullKernel>(node.op->name, items);
  }
};

}  // namespace

std::unique_ptr<Backend> make_null_backend() { return std::make_unique<NullBackend>(); }

}  // namespace fullbore
