#include "fullbore/passes/loops/loop_invariant_code_motion.h"

#include <fmt/format.h>

#include <algorithm>

#include "fullbore/ir/loop.h"
#include "fullbore/ir/op_def.h"
#include "fullbore/passes/canonicalize/simplify_rules.h"
#include "fullbore/passes/support/rewriter.h"

namespace fullbore {
namespace {

size_t place(Value value) { return static_cast<size_t>(value.id); }

// What a cast to low precision narrows, where that was widened from the same dtype. Outside of the loop such a pair is
// visible at last: a weight that is stored in bf16, widened before the loop and narrowed for a matmul in it.
Tensor undone_cast(const Node& node, const std::vector<Tensor>& operands) {
  if (!node.op->is(Tag::elementwise) || node.op->scalar != ScalarOp::cast) return {};
  const Tensor wide = operands[0];
  const auto to = node.attributes.get<DType>("dtype");
  const Node* const widened = made_by(wide, *node.op);
  if (!widened || !is_low_precision(to) || !is_floating(wide.dtype())) return {};
  const Tensor source = operand(wide, *widened);
  return source.dtype() == to ? source : Tensor();
}

// Costs nothing, or less than reading the result from memory would.
bool is_trivial(const Graph& graph, const Node& node) {
  if (node.inputs.empty() || node.op->is(Tag::identity)) return true;
  if (!node.op->is(Tag::movement)) return false;
  int64_t read = 0;
  for (Value input : node.inputs) read += graph.type(input).bytes();
  return read < graph.type(node.outputs[0]).bytes();
}

/// One loop whose body has been cleared of invariants already.
class CodeMotion {
 public:
  CodeMotion(GraphBuilder& outer, const Node& node, std::vector<Tensor> operands, const Graph& body)
      : outer_(outer),
        node_(node),
        body_(body),
        shape_(node.attributes, static_cast<int>(operands.size()), body),
        operands_(std::move(operands)) {}

  std::vector<Tensor> run() {
    find_invariant();
    choose();
    emit_outside();
    return emit_loop();
  }

 private:
  size_t carried() const { return static_cast<size_t>(shape_.carried); }
  size_t first_capture() const { return static_cast<size_t>(1 + shape_.carried + shape_.sliced); }
  Value input(size_t i) const { return body_.inputs()[i].value; }
  // The operand that feeds input `i` of the body.
  Tensor operand(size_t i) const {
    return operands_[i - 1 + static_cast<size_t>(shape_.first_carried())];
  }
  bool constant_carry(size_t c) const { return body_.outputs()[c].value == input(1 + c); }

  void find_invariant() {
    invariant_.assign(static_cast<size_t>(body_.value_count()), false);
    for (size_t i = 1; i < body_.inputs().size(); ++i)
      invariant_[place(input(i))] =
          i >= first_capture() || (i <= carried() && constant_carry(i - 1));
    for (const Node& node : body_.nodes()) {
      const bool all = std::all_of(node.inputs.begin(), node.inputs.end(),
                                   [&](Value value) { return invariant_[place(value)]; });
      for (Value output : node.outputs) invariant_[place(output)] = all;
    }
  }

  // moved_: invariant values that the body reads ready made. outside_: nodes that make them, or
  // what they need. stays_: nodes of the new body; what is trivial may be both.
  void choose() {
    moved_.assign(invariant_.size(), false);
    outside_.assign(body_.nodes().size(), false);
    stays_.assign(body_.nodes().size(), false);
    std::vector<bool> read(invariant_.size(), false);    // by the new body
    std::vector<bool> needed(invariant_.size(), false);  // outside
    for (const Graph::Output& output : body_.outputs()) read[place(output.value)] = true;
    for (size_t i = body_.nodes().size(); i-- > 0;) {
      const Node& node = body_.nodes()[i];
      if (node.outputs.empty()) continue;
      const auto any = [&](const std::vector<bool>& flags) {
        return std::any_of(node.outputs.begin(), node.outputs.end(),
                           [&](Value value) { return flags[place(value)]; });
      };
      const bool leaves =
          invariant_[place(node.outputs[0])] && any(read) && !is_trivial(body_, node);
      if (leaves)
        for (Value output : node.outputs) moved_[place(output)] = read[place(output)];
      outside_[i] = leaves || any(needed);
      stays_[i] = !leaves && (any(read) || !outside_[i]);
      for (Value value : node.inputs) {
        if (outside_[i]) needed[place(value)] = true;
        if (stays_[i]) read[place(value)] = true;
      }
    }
  }

  void emit_outside() {
    std::vector<Tensor> values(invariant_.size());
    for (size_t i = 1; i < body_.inputs().size(); ++i) values[place(input(i))] = operand(i);
    for (size_t i = 0; i < outside_.size(); ++i) {
      if (!outside_[i]) continue;
      const Node& node = body_.nodes()[i];
      const std::vector<Tensor> operands = mapped(node.inputs, values);
      const Tensor undone = undone_cast(node, operands);
      const std::vector<Tensor> results =
          undone.valid() ? std::vector<Tensor>{undone} : outer_.emit_like(node, operands);
      for (size_t k = 0; k < results.size(); ++k) {
        values[place(node.outputs[k])] = results[k];
        if (moved_[place(node.outputs[k])]) ready_.push_back({node.outputs[k], results[k]});
      }
    }
  }

  static std::vector<Tensor> mapped(const std::vector<Value>& from,
                                    const std::vector<Tensor>& values) {
    std::vector<Tensor> result;
    for (Value value : from) result.push_back(values[place(value)]);
    return result;
  }

  std::vector<Tensor> emit_loop() {
    bool unchanging = body_.outputs().size() == carried();
    for (size_t c = 0; c < carried(); ++c) unchanging = unchanging && constant_carry(c);
    if (unchanging) return results({});  // the loop does nothing
    GraphBuilder body(body_.name());
    std::vector<Tensor> values(invariant_.size());
    std::vector<Tensor> operands(operands_.begin(), operands_.begin() + shape_.first_carried());
    const auto declare = [&](size_t i) {
      const Graph::Input& from = body_.inputs()[i];
      values[place(from.value)] = body.input(from.name, Role::local, body_.type(from.value));
      if (i > 0) operands.push_back(operand(i));
    };
    declare(0);
    int64_t carries = 0;
    for (size_t c = 0; c < carried(); ++c)
      if (!constant_carry(c)) declare(1 + c), ++carries;
    for (size_t i = 1 + carried(); i < body_.inputs().size(); ++i) declare(i);
    for (size_t c = 0; c < carried(); ++c)
      if (constant_carry(c)) declare(1 + c);
    for (const Ready& ready : ready_) {
      int number = static_cast<int>(body.graph().inputs().size());
      while (body_.find_input(fmt::format("invariant{}", number)) >= 0) ++number;
      values[place(ready.inner)] =
          body.input(fmt::format("invariant{}", number), Role::local, body_.type(ready.inner));
      operands.push_back(ready.outer);
    }
    for (size_t i = 0; i < stays_.size(); ++i) {
      if (!stays_[i]) continue;
      const Node& node = body_.nodes()[i];
      const std::vector<Tensor> results = body.emit_like(node, mapped(node.inputs, values));
      for (size_t k = 0; k < results.size(); ++k) values[place(node.outputs[k])] = results[k];
    }
    for (size_t i = 0; i < body_.outputs().size(); ++i)
      if (i >= carried() || !constant_carry(i))
        body.output(body_.outputs()[i].name, values[place(body_.outputs()[i].value)]);
    Node changed = node_;
    changed.attributes.set("carried", carries);
    changed.body = std::make_shared<const Graph>(body.take());
    return results(outer_.emit_like(changed, operands));
  }

  // The results of the loop as it was: an unchanging carried value is its operand.
  std::vector<Tensor> results(const std::vector<Tensor>& made) const {
    std::vector<Tensor> result;
    size_t next = 0;
    for (size_t c = 0; c < carried(); ++c)
      result.push_back(constant_carry(c) ? operand(1 + c) : made[next++]);
    result.insert(result.end(), made.begin() + static_cast<int64_t>(next), made.end());
    return result;
  }

  struct Ready {
    Value inner;
    Tensor outer;
  };
  GraphBuilder& outer_;
  const Node& node_;
  const Graph& body_;
  const LoopShape shape_;
  const std::vector<Tensor> operands_;
  std::vector<bool> invariant_, moved_;  // per value of the body
  std::vector<bool> outside_, stays_;    // per node of the body
  std::vector<Ready> ready_;
};

}  // namespace

Graph loop_invariant_code_motion(const Graph& graph, const Target& target) {
  Rewriter rewriter(graph);
  for (const Node& node : graph.nodes()) {
    if (!is_loop(node)) {
      rewriter.copy(node);
      continue;
    }
    const Graph body = loop_invariant_code_motion(*node.body, target);  // inner loops first
    rewriter.map(node,
                 CodeMotion(rewriter.builder(), node, rewriter.tensors(node.inputs), body).run());
  }
  return rewriter.finish();
}

}  // namespace fullbore
