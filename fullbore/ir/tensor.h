#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fullbore/base/source_loc.h"
#include "fullbore/ir/graph.h"

namespace fullbore {

class GraphBuilder;

/// Where tensors find their builder, and that it is gone: the slot outlives it, and the next builder in it has another
/// generation.
struct BuilderSlot {
  GraphBuilder* builder = nullptr;
  uint32_t generation = 0;
};

/// Symbolic handle to a value of the graph being built, with dtype and static shape. To ask an empty one, or one of a
/// trace that has ended, is a UsageError that names the line of the caller.
class Tensor {
 public:
  Tensor() = default;
  Tensor(GraphBuilder* builder, Value value);

  bool valid() const { return slot_ != nullptr; }
  /// Does it belong to a trace, or to a loop's body, that is still being written?
  bool alive() const;
  GraphBuilder& builder(SourceLoc loc = SourceLoc::here()) const {
    if (slot_ == nullptr || slot_->generation != generation_) fail(loc);
    return *slot_->builder;
  }
  Value value() const { return value_; }
  const TensorType& type(SourceLoc loc = SourceLoc::here()) const;
  DType dtype(SourceLoc loc = SourceLoc::here()) const { return type(loc).dtype; }
  const Shape& shape(SourceLoc loc = SourceLoc::here()) const { return type(loc).shape; }
  int rank(SourceLoc loc = SourceLoc::here()) const { return shape(loc).rank(); }
  /// The extent of an axis; a negative one counts from the end.
  int64_t dim(int axis, SourceLoc loc = SourceLoc::here()) const;

  // clang-format off
  explicit operator bool() const = delete;  // a value is not known before the step runs: select(), cond() or while_loop() (fullbore/trace/control.h) decide by it; valid() asks whether there is a Tensor
  // clang-format on

 private:
  [[noreturn]] void fail(SourceLoc loc) const;

  const BuilderSlot* slot_ = nullptr;
  uint32_t generation_ = 0;
  Value value_;
};

/// Grows one graph. A builder with an outer one builds a loop's body: operands that belong to an
/// enclosing graph become captured inputs of the body by themselves.
class GraphBuilder {
 public:
  explicit GraphBuilder(std::string name = "step", GraphBuilder* outer = nullptr);
  ~GraphBuilder();
  GraphBuilder(const GraphBuilder&) = delete;
  GraphBuilder& operator=(const GraphBuilder&) = delete;

  Tensor input(std::string name, Role role, TensorType type);
  Tensor input(DerivedWeight derived, TensorType type);
  /// An input that is to this graph what `like` is to its own.
  Tensor input_like(const Graph::Input& like, TensorType type);
  void output(std::string name, Tensor tensor, int updates = -1);

  /// Appends a node and returns its outputs. Operands of enclosing builders are captured.
  std::vector<Tensor> emit(const OpDef& op, std::span<const Tensor> inputs, Attributes attributes,
                           SourceLoc loc, std::shared_ptr<const Graph> body = nullptr);
  Tensor emit_one(const OpDef& op, std::initializer_list<Tensor> inputs, Attributes attributes,
                  SourceLoc loc);
  Tensor emit_one(std::string_view op, std::initializer_list<Tensor> inputs, Attributes attributes,
                  SourceLoc loc);
  /// Copies a node of another graph here, on other operands.
  std::vector<Tensor> emit_like(const Node& node, std::span<const Tensor> inputs);

  /// The tensor as a value of this graph: itself, or the body input that stands for it.
  Tensor import(Tensor tensor);
  struct Capture {
    Tensor outer;
    Tensor inner;
  };
  const std::vector<Capture>& captures() const { return captures_; }

  const Graph& graph() const { return graph_; }
  Graph take() { return std::move(graph_); }
  GraphBuilder* outer() const { return outer_; }
  const BuilderSlot& slot() const { return *slot_; }

  /// The node in whose name nodes are emitted at present, or null; see Origin.
  const Node* origin() const { return origin_ ? origin_ : outer_ ? outer_->origin() : nullptr; }

  /// Names the module whose nodes follow; see Scope.
  std::string scope() const;
  void push_scope(std::string name) { scopes_.push_back(std::move(name)); }
  void pop_scope() { scopes_.pop_back(); }

 private:
  Graph graph_;
  GraphBuilder* outer_;
  BuilderSlot* slot_;
  std::vector<Capture> captures_;
  std::vector<std::string> scopes_;
  const Node* origin_ = nullptr;
  friend class Origin;
};

/// While it lives, what `builder` and the bodies inside it emit has the location and scope of
/// `like`: for transforms, whose nodes belong to the line of model code that caused them.
class Origin {
 public:
  Origin(GraphBuilder& builder, const Node& like);
  ~Origin() { builder_.origin_ = outer_; }
  Origin(const Origin&) = delete;
  Origin& operator=(const Origin&) = delete;
  /// The location, for the errors of what is emitted; valid as long as this object.
  SourceLoc loc() const { return {file_.c_str(), line_}; }

 private:
  GraphBuilder& builder_;
  Node like_;  ///< location and scope only: the graph that holds `like` may grow
  std::string file_;
  int line_ = 0;
  const Node* outer_;
};

/// Copies every node of `graph` into `builder`, its inputs replaced by `inputs`; returns the
/// tensors of its outputs.
std::vector<Tensor> inline_graph(GraphBuilder& builder, const Graph& graph,
                                 std::span<const Tensor> inputs);

}  // namespace fullbore
