#pragma once
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fullbore/base/shape.h"
#include "fullbore/base/source_loc.h"
#include "fullbore/ir/attributes.h"
#include "fullbore/ir/derived_weight.h"

namespace fullbore {

struct OpDef;
class Graph;

/// A value of one graph: an index into its table of values; -1 is "none".
struct Value {
  int32_t id = -1;
  bool valid() const { return id >= 0; }
  auto operator<=>(const Value&) const = default;
};

/// What a graph's input is to the step. All but `batch` and `local` persist from step to step; of these all but
/// `derived` are saved.
enum class Role : uint8_t {
  batch,      ///< handed over anew for each step
  parameter,  ///< trained
  frozen,     ///< a parameter that no gradient is wanted for
  moment,     ///< optimiser state
  ema,        ///< exponential moving averages of parameters
  control,    ///< scalars: step, seed, loss scale, counters
  recurrent,  ///< recurrent state carried from batch to batch, caches
  derived,    ///< a parameter as matmuls read it (derived_weight.h): beside State, never saved
  local       ///< input of a loop's body
};
std::string_view role_name(Role role);
/// Does it persist from step to step, saved or not?
inline bool is_kept(Role role) { return role != Role::batch && role != Role::local; }
/// Is it saved and restored?
inline bool is_state(Role role) { return is_kept(role) && role != Role::derived; }

/// One application of an op. Immutable once in a graph.
struct Node {
  const OpDef* op = nullptr;
  std::vector<Value> inputs;
  std::vector<Value> outputs;
  Attributes attributes;
  std::shared_ptr<const Graph> body;  ///< of a `loop` or `fused` node; null for every other op
  std::string location;               ///< line of model code, "models/example.cpp:88"
  std::string scope;                  ///< module path, "layers.0.attention"
};

/// Static single assignment, nodes in topological order: a value is made by one node (or is an
/// input) before any node that reads it. Grown by add_*; never edited in place: a pass builds a new
/// graph.
class Graph {
 public:
  struct Input {
    std::string name;
    Role role = Role::batch;
    Value value;
    std::optional<DerivedWeight> derived = {};  ///< of role `derived`, or `frozen` in 8 bits
  };
  struct Output {
    std::string name;
    Value value;
    int updates = -1;  ///< index of the State input that this value replaces, or -1: a result
  };

  explicit Graph(std::string name = "step") : name_(std::move(name)) {}

  Value add_input(std::string name, Role role, TensorType type);
  /// An input of role `derived`, by its own name.
  Value add_input(DerivedWeight derived, TensorType type);
  /// An input that is to another graph what `like` is to its own.
  Value add_input_like(const Input& like, TensorType type);
  /// Appends a node; its output types come from the op's `infer`, which throws UsageError when the
  /// inputs do not fit.
  const Node& add_node(const OpDef& op, std::vector<Value> inputs, Attributes attributes,
                       std::shared_ptr<const Graph> body = nullptr, SourceLoc loc = {},
                       std::string scope = "");
  /// The same, keeping the origin of `like` (a copied or rewritten node).
  const Node& add_node_like(const Node& like, const OpDef& op, std::vector<Value> inputs,
                            Attributes attributes, std::shared_ptr<const Graph> body = nullptr);
  void add_output(std::string name, Value value, int updates = -1);

  const std::string& name() const { return name_; }
  const std::vector<Node>& nodes() const { return nodes_; }
  const std::vector<Input>& inputs() const { return inputs_; }
  const std::vector<Output>& outputs() const { return outputs_; }
  int value_count() const { return static_cast<int>(types_.size()); }
  const TensorType& type(Value value) const { return types_[static_cast<size_t>(value.id)]; }
  /// Index of the node that makes the value, or -1 for an input.
  int producer(Value value) const { return producers_[static_cast<size_t>(value.id)]; }
  const Node* producer_node(Value value) const {
    return producer(value) < 0 ? nullptr : &nodes_[static_cast<size_t>(producer(value))];
  }
  int find_input(std::string_view name) const;   ///< index, or -1
  int find_output(std::string_view name) const;  ///< index, or -1
  /// Number of reads of each value by nodes and outputs.
  std::vector<int> use_counts() const;

 private:
  const Node& append(Node node, SourceLoc loc);
  Value new_value(TensorType type, int producer);

  std::string name_;
  std::vector<Node> nodes_;
  std::deque<TensorType> types_;  ///< a deque: Tensor::shape() stays valid while the graph grows
  std::vector<int> producers_;
  std::vector<Input> inputs_;
  std::vector<Output> outputs_;
};

}  // namespace fullbore
