#include "fullbore/ir/tensor.h"

#include <cstdlib>
#include <deque>
#include <mutex>
#include <utility>

#include "fullbore/base/check.h"
#include "fullbore/base/error.h"
#include "fullbore/ir/op_def.h"

namespace fullbore {

namespace {

// Slots are never given back, so that a Tensor may be asked however late; a new builder takes one that is free.
class BuilderSlots {
 public:
  BuilderSlot* take(GraphBuilder* builder) {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) free_.push_back(&slots_.emplace_back());
    BuilderSlot* slot = free_.back();
    free_.pop_back();
    slot->builder = builder;
    return slot;
  }
  void give_back(BuilderSlot* slot) {
    const std::lock_guard lock(mutex_);
    slot->builder = nullptr;
    ++slot->generation;
    free_.push_back(slot);
  }

 private:
  std::mutex mutex_;
  std::deque<BuilderSlot> slots_;
  std::vector<BuilderSlot*> free_;
};

// Never destroyed: static tensors may be asked at the end of a program.
BuilderSlots& slots() {
  static auto* const all = new BuilderSlots;
  return *all;
}

}  // namespace

Tensor::Tensor(GraphBuilder* builder, Value value)
    : slot_(&builder->slot()), generation_(slot_->generation), value_(value) {}

bool Tensor::alive() const {
  return slot_ != nullptr && slot_->generation == generation_ &&
         value_.id < slot_->builder->graph().value_count();
}

void Tensor::fail(SourceLoc loc) const {
  if (!valid()) throw UsageError("an empty Tensor was used", loc);
  throw UsageError("a Tensor was used after the trace or the body of a loop that made it", loc);
}

const TensorType& Tensor::type(SourceLoc loc) const {
  if (!alive()) fail(loc);
  return slot_->builder->graph().type(value_);
}

int64_t Tensor::dim(int axis, SourceLoc loc) const {
  const Shape& extents = shape(loc);
  const int from_start = axis < 0 ? axis + extents.rank() : axis;
  if (from_start < 0 || from_start >= extents.rank())
    throw UsageError("axis " + std::to_string(axis) + " of " + type(loc).text(), loc);
  return extents[from_start];
}

GraphBuilder::GraphBuilder(std::string name, GraphBuilder* outer)
    : graph_(std::move(name)), outer_(outer), slot_(slots().take(this)) {}

GraphBuilder::~GraphBuilder() { slots().give_back(slot_); }

Tensor GraphBuilder::input(std::string name, Role role, TensorType type) {
  return {this, graph_.add_input(std::move(name), role, std::move(type))};
}

Tensor GraphBuilder::input(DerivedWeight derived, TensorType type) {
  return {this, graph_.add_input(std::move(derived), std::move(type))};
}

Tensor GraphBuilder::input_like(const Graph::Input& like, TensorType type) {
  return {this, graph_.add_input_like(like, std::move(type))};
}

void GraphBuilder::output(std::string name, Tensor tensor, int updates) {
  graph_.add_output(std::move(name), import(tensor).value(), updates);
}

Tensor GraphBuilder::import(Tensor tensor) {
  if (&tensor.builder() == this) return tensor;
  if (!outer_)
    throw UsageError("a Tensor of another trace, or of the body of a loop, was used in '" +
                     graph_.name() + "'");
  for (const Capture& capture : captures_)
    if (&capture.outer.builder() == &tensor.builder() && capture.outer.value() == tensor.value())
      return capture.inner;
  const Tensor inner =
      input("capture" + std::to_string(captures_.size()), Role::local, tensor.type());
  captures_.push_back({tensor, inner});
  return inner;
}

std::vector<Tensor> GraphBuilder::emit(const OpDef& op, std::span<const Tensor> inputs,
                                       Attributes attributes, SourceLoc loc,
                                       std::shared_ptr<const Graph> body) {
  std::vector<Value> values;
  values.reserve(inputs.size());
  for (const Tensor& input : inputs) values.push_back(import(input).value());
  const Node* like = origin();
  const Node& node = like ? graph_.add_node_like(*like, op, std::move(values),
                                                 std::move(attributes), std::move(body))
                          : graph_.add_node(op, std::move(values), std::move(attributes),
                                            std::move(body), loc, scope());
  std::vector<Tensor> outputs;
  for (Value output : node.outputs) outputs.emplace_back(this, output);
  return outputs;
}

Tensor GraphBuilder::emit_one(const OpDef& op, std::initializer_list<Tensor> inputs,
                              Attributes attributes, SourceLoc loc) {
  return emit(op, std::span(inputs.begin(), inputs.size()), std::move(attributes), loc)[0];
}

Tensor GraphBuilder::emit_one(std::string_view op, std::initializer_list<Tensor> inputs,
                              Attributes attributes, SourceLoc loc) {
  return emit_one(get_op(op), inputs, std::move(attributes), loc);
}

std::vector<Tensor> GraphBuilder::emit_like(const Node& node, std::span<const Tensor> inputs) {
  std::vector<Value> values;
  values.reserve(inputs.size());
  for (const Tensor& input : inputs) values.push_back(import(input).value());
  const Node& copy =
      graph_.add_node_like(node, *node.op, std::move(values), node.attributes, node.body);
  std::vector<Tensor> outputs;
  for (Value output : copy.outputs) outputs.emplace_back(this, output);
  return outputs;
}

std::string GraphBuilder::scope() const {
  std::string result = outer_ ? outer_->scope() : "";
  for (const std::string& name : scopes_)
    result += (result.empty() ? "" : ".") + (name.empty() ? std::string("(unnamed)") : name);
  return result;
}

Origin::Origin(GraphBuilder& builder, const Node& like)
    : builder_(builder), outer_(builder.origin_) {
  like_.location = like.location;
  like_.scope = like.scope;
  const size_t colon = like.location.rfind(':');
  if (colon != std::string::npos) {
    file_ = like.location.substr(0, colon);
    line_ = std::atoi(like.location.c_str() + colon + 1);
  }
  builder_.origin_ = &like_;
}

std::vector<Tensor> inline_graph(GraphBuilder& builder, const Graph& graph,
                                 std::span<const Tensor> inputs) {
  FB_CHECK(inputs.size() == graph.inputs().size(), "{} operands for {} inputs of '{}'",
           inputs.size(), graph.inputs().size(), graph.name());
  std::vector<Tensor> tensors(static_cast<size_t>(graph.value_count()));
  for (size_t i = 0; i < inputs.size(); ++i)
    tensors[static_cast<size_t>(graph.inputs()[i].value.id)] = inputs[i];
  for (const Node& node : graph.nodes()) {
    std::vector<Tensor> operands;
    for (Value input : node.inputs) operands.push_back(tensors[static_cast<size_t>(input.id)]);
    const std::vector<Tensor> results = builder.emit_like(node, operands);
    for (size_t i = 0; i < results.size(); ++i)
      tensors[static_cast<size_t>(node.outputs[i].id)] = results[i];
  }
  std::vector<Tensor> outputs;
  for (const Graph::Output& output : graph.outputs())
    outputs.push_back(tensors[static_cast<size_t>(output.value.id)]);
  return outputs;
}

}  // namespace fullbore
