#pragma once
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fullbore/ir/graph.h"

namespace fullbore {

class GraphBuilder;

/// Symbolic handle to a value of the graph being built, with dtype and static shape.
class Tensor {
 public:
  Tensor() = default;
  Tensor(GraphBuilder* builder, Value value) : builder_(builder), value_(value) {}

  bool valid() const { return builder_ != nullptr; }
  GraphBuilder& builder() const { return *builder_; }
  Value value() const { return value_; }
  const TensorType& type() const;
  DType dtype() const { return type().dtype; }
  const Shape& shape() const { return type().shape; }
  int rank() const { return shape().rank(); }
  int64_t dim(int axis) const { return shape()[axis < 0 ? axis + rank() : axis]; }

 private:
  GraphBuilder* builder_ = nullptr;
  Value value_;
};

/// Grows one graph. A builder with an outer one builds a loop's body: operands that belong to an
/// enclosing graph become captured inputs of the body by themselves.
class GraphBuilder {
 public:
  explicit GraphBuilder(std::string name = "step", GraphBuilder* outer = nullptr)
      : graph_(std::move(name)), outer_(outer) {}
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

  /// The node in whose name nodes are emitted at present, or null; see Origin.
  const Node* origin() const { return origin_ ? origin_ : outer_ ? outer_->origin() : nullptr; }

  /// Names the module whose nodes follow; see Scope.
  std::string scope() const;
  void push_scope(std::string name) { scopes_.push_back(std::move(name)); }
  void pop_scope() { scopes_.pop_back(); }

 private:
  Graph graph_;
  GraphBuilder* outer_;
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
