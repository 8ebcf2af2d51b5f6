#pragma once
#include <atomic>
#include <string_view>

#include "fullbore/ir/op_def.h"

namespace fullbore {

/// An op that code knows: looked up once, compared by address from then on. ops/op_handles.h declares them.
class OpHandle {
 public:
  constexpr explicit OpHandle(std::string_view name) : name_(name) {}

  /// Aborts if no op of that name is registered.
  const OpDef& get() const {
    const OpDef* op = op_.load(std::memory_order_relaxed);
    if (op == nullptr) {
      op = &get_op(name_);
      op_.store(op, std::memory_order_relaxed);
    }
    return *op;
  }
  operator const OpDef&() const { return get(); }  // NOLINT: an op wherever one is asked for
  std::string_view name() const { return name_; }

  friend bool operator==(const OpDef* op, const OpHandle& handle) { return op == &handle.get(); }
  friend bool operator==(const OpDef& op, const OpHandle& handle) { return &op == &handle.get(); }

 private:
  std::string_view name_;
  mutable std::atomic<const OpDef*> op_ = nullptr;
};

}  // namespace fullbore
