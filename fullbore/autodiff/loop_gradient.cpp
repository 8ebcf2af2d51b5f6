#include "fullbore/autodiff/loop_gradient.h"

#include <fmt/format.h>

#include <algorithm>

#include "fullbore/autodiff/continued_sums.h"
#include "fullbore/autodiff/recorded_decisions.h"
#include "fullbore/autodiff/residuals.h"
#include "fullbore/ir/op_def.h"
#include "fullbore/ops/counted_rows.h"
#include "fullbore/ops/ops.h"

namespace fullbore {
namespace {

size_t place(Value value) { return static_cast<size_t>(value.id); }

// A loop under construction: its body, and beside each of the body's inputs the operand that feeds
// it. The inputs must come in the order carried, sliced, captured.
struct LoopUnderWay {
  GraphBuilder body;
  std::vector<Tensor> operands = {};
  int64_t carried = 0;
  int64_t sliced = 0;

  Tensor carry(std::string name, Tensor initial) {
    operands.push_back(initial);
    ++carried;
    return body.input(std::move(name), Role::local, initial.type());
  }
  Tensor slice(std::string name, Tensor rows) {
    operands.push_back(rows);
    ++sliced;
    return body.input(std::move(name), Role::local, {rows.dtype(), rows.shape().without(0)});
  }
  Tensor capture(std::string name, Tensor value) {
    operands.push_back(value);
    return body.input(std::move(name), Role::local, value.type());
  }
};

class LoopGradient {
 public:
  LoopGradient(GraphBuilder& builder, const Node& node, const std::vector<Tensor>& cotangents)
      : builder_(builder),
        node_(node),
        shape_(node_),
        body_(*node_.body),
        cotangents_(cotangents),
        loop_{GraphBuilder(body_.name() + " gradient")} {}

  std::vector<Tensor> run(const std::vector<bool>& wanted, int index,
                          std::vector<AugmentedLoop>& augmented) {
    std::vector<Tensor> results(node_.inputs.size());
    if (!find_flows(wanted)) return results;
    joint_ = differentiate_body(body_, flows_, wanted_);
    if (shape_.segments > 1) {
      RecordedBody recorded = record_decisions(joint_, body_, shape_.carried);
      joint_ = std::move(recorded.joint);
      residuals_ = choose_segment_residuals(joint_, body_, shape_, recorded.kept);
      continued_ = continued_sums(joint_);
    } else {
      residuals_ = choose_residuals(joint_, body_, shape_);
    }
    emit_forward(index, augmented);
    begin_body();
    emit_body();
    end_body();
    // Nothing may come of what flows in, where it meets an op without a gradient.
    if (!loop_.body.graph().outputs().empty()) collect(emit_loop(), results);
    return results;
  }

 private:
  size_t carried() const { return static_cast<size_t>(shape_.carried); }
  size_t first_slice() const { return 1 + carried(); }
  size_t first_capture() const { return first_slice() + static_cast<size_t>(shape_.sliced); }
  // Operand of the node that feeds input `i` of the body (i > 0: the index is fed by nobody).
  size_t operand(size_t i) const { return i - 1 + static_cast<size_t>(shape_.first_carried()); }
  Tensor outer(Value value) const { return {&builder_, value}; }
  // An until loop in reverse order stops at an index above 0, which `counted` cannot start from: go
  // through all of the indices that it might have made and let those that it did not change nothing.
  bool masked() const { return shape_.until && shape_.reverse; }

  // Sets flows_ and wanted_: what varies with a wanted operand and reaches a result that a cotangent
  // comes from, in this iteration or by way of the carried values in a later one.
  bool find_flows(const std::vector<bool>& wanted) {
    wanted_.assign(body_.inputs().size(), false);
    for (size_t i = 1; i < wanted_.size(); ++i) wanted_[i] = wanted[operand(i)];
    flows_.assign(body_.outputs().size(), false);
    for (size_t i = 0; i < flows_.size(); ++i)
      flows_[i] = i < cotangents_.size() && cotangents_[i].valid();
    std::vector<bool> varying, reached;
    for (bool changed = true; changed;) {
      varying = varying_outputs(body_, wanted_, shape_.segments > 1);
      reached = reached_inputs(body_, flows_, shape_.segments > 1);
      changed = false;
      for (size_t c = 0; c < carried(); ++c) {
        if (!is_floating(body_.type(body_.inputs()[1 + c].value).dtype)) continue;
        changed |= (varying[c] && !wanted_[1 + c]) || (reached[1 + c] && !flows_[c]);
        wanted_[1 + c] = wanted_[1 + c] || varying[c];
        flows_[c] = flows_[c] || reached[1 + c];
      }
    }
    for (size_t c = 0; c < carried(); ++c) wanted_[1 + c] = flows_[c] = wanted_[1 + c] && flows_[c];
    for (size_t i = carried(); i < flows_.size(); ++i) flows_[i] = flows_[i] && varying[i];
    return std::find(flows_.begin(), flows_.end(), true) != flows_.end();
  }

  // The forward loop again, with the residuals stacked behind what it stacks already.
  void emit_forward(int index, std::vector<AugmentedLoop>& augmented) {
    for (Value output : node_.outputs) forward_.push_back(outer(output));
    const auto first = joint_.outputs.begin() + shape_.carried;
    const auto last = first + shape_.stacked;
    std::vector<Value> extra;
    for (Value value : residuals_.stacked) {
      const auto stacked = std::find(first, last, value);
      residual_output_.push_back(
          stacked != last ? static_cast<size_t>(stacked - joint_.outputs.begin())
                          : static_cast<size_t>(shape_.carried + shape_.stacked) + extra.size());
      if (stacked == last) extra.push_back(value);
    }
    if (extra.empty()) return;

    GraphBuilder body(body_.name());
    std::vector<Tensor> values(static_cast<size_t>(joint_.graph.value_count()));
    for (size_t i = 0; i < body_.inputs().size(); ++i) {
      const Graph::Input& input = joint_.graph.inputs()[i];
      values[place(input.value)] =
          body.input(input.name, Role::local, joint_.graph.type(input.value));
    }
    for (int i = 0; i < joint_.forward_nodes; ++i) emit_copy(body, i, values);
    const auto output = [&](Value value) { body.output("", values[place(value)]); };
    std::for_each(joint_.outputs.begin(), last, output);
    std::for_each(extra.begin(), extra.end(), output);
    std::for_each(last, joint_.outputs.end(), output);
    std::vector<Tensor> operands;
    for (Value input : node_.inputs) operands.push_back(outer(input));
    augmented.push_back({index, static_cast<int>(builder_.graph().nodes().size())});
    forward_ = builder_.emit(*node_.op, operands, node_.attributes, {},
                             std::make_shared<const Graph>(body.take()));
  }

  void emit_copy(GraphBuilder& to, int index, std::vector<Tensor>& values) const {
    const Node& node = joint_.graph.nodes()[static_cast<size_t>(index)];
    std::vector<Tensor> operands;
    for (Value input : node.inputs) operands.push_back(values[place(input)]);
    for (size_t i = 0; i < continued_.size(); ++i)
      if (continued_[i].loop == index) operands[continued_[i].operand] = sum_of_input_[i];
    const std::vector<Tensor> results = to.emit_like(node, operands);
    for (size_t i = 0; i < results.size(); ++i) values[place(node.outputs[i])] = results[i];
  }

  // The sum over the iterations of a segment, or else this iteration's addend to the sum over all.
  bool continues(size_t input) const { return !continued_.empty() && continued_[input].loop >= 0; }
  Value summed(size_t input) const {
    return continues(input) ? continued_[input].result : joint_.input_cotangents[input];
  }

  Tensor& inner(Value value) { return values_[place(value)]; }
  Value body_input(size_t i) const { return joint_.graph.inputs()[i].value; }
  TensorType sum_type(Value value) const {
    const TensorType& type = joint_.graph.type(value);
    return {is_low_precision(type.dtype) ? DType::f32 : type.dtype, type.shape};
  }

  // Declares the inputs of the backward loop's body and the operands that feed them.
  void begin_body() {
    values_.resize(static_cast<size_t>(joint_.graph.value_count()));
    index_ = loop_.body.input("index", Role::local, {DType::i64, {}});
    inner(body_input(0)) = index_;
    for (size_t c = 0; c < carried(); ++c) {
      if (!flows_[c]) continue;
      const Tensor last = cotangents_[c].valid() ? cotangents_[c] : no_cotangent(c);
      inner(joint_.output_cotangents[c]) = loop_.carry(fmt::format("cotangent{}", c), last);
    }
    sum_of_input_.resize(body_.inputs().size());
    for (size_t i = first_capture(); i < body_.inputs().size(); ++i)
      if (joint_.input_cotangents[i].valid())
        sum_of_input_[i] = loop_.carry(fmt::format("sum{}", i - first_capture()),
                                       full(builder_, sum_type(summed(i)), 0));
    for (size_t i = first_slice(); i < first_capture(); ++i)
      if (residuals_.passed[i])
        inner(body_input(i)) =
            loop_.slice(fmt::format("slice{}", i - first_slice()), outer(node_.inputs[operand(i)]));
    for (size_t r = 0; r < residuals_.stacked.size(); ++r)
      inner(residuals_.stacked[r]) =
          loop_.slice(fmt::format("residual{}", r), forward_[residual_output_[r]]);
    for (size_t i = carried(); i < flows_.size(); ++i)
      if (flows_[i])
        inner(joint_.output_cotangents[i]) =
            loop_.slice(fmt::format("cotangent{}", i), cotangents_[i]);
    for (size_t i = first_capture(); i < body_.inputs().size(); ++i)
      if (residuals_.passed[i])
        inner(body_input(i)) = loop_.capture(fmt::format("capture{}", i - first_capture()),
                                             outer(node_.inputs[operand(i)]));
    if (masked()) {
      const Tensor first = loop_.capture("first", first_index_made());
      made_ = less_equal(first, index_);
    }
  }

  // Of a carried value that nobody reads behind the loop. Where the body gathers it, the gradient of that gather is the
  // only reader and looks at as many rows as the gather made in the last iteration, which another carried value tells.
  Tensor no_cotangent(size_t c) const {
    const Node* const maker = body_.producer_node(body_.outputs()[c].value);
    const bool made = shape_.iterations > 0 && !shape_.counted && !masked();
    if (made && maker && has_counted_rows(*maker))
      for (size_t k = 0; k < carried(); ++k)
        if (body_.outputs()[k].value == maker->inputs[3])
          return zero_rows(builder_, forward_[c].type(), forward_[k]);
    return zeros_like(forward_[c]);
  }

  Tensor first_index_made() const {
    const Tensor bound = full(builder_, {DType::i64, {}}, static_cast<double>(shape_.iterations));
    const Tensor most = shape_.counted ? minimum(outer(node_.inputs[0]), bound) : bound;
    return sub(most, forward_.back());
  }

  void emit_body() {
    for (int i = 0; i < static_cast<int>(joint_.graph.nodes().size()); ++i)
      if (residuals_.emitted[static_cast<size_t>(i)]) emit_copy(loop_.body, i, values_);
  }

  void output(Tensor next, Tensor previous) {
    loop_.body.output("", made_.valid() ? select(made_, next, previous) : next);
  }

  void end_body() {
    for (size_t c = 0; c < carried(); ++c) {
      if (!flows_[c]) continue;
      const Tensor previous = inner(joint_.output_cotangents[c]);
      const Value cotangent = joint_.input_cotangents[1 + c];
      output(cotangent.valid() ? inner(cotangent) : zeros_like(previous), previous);
    }
    for (size_t i = first_capture(); i < body_.inputs().size(); ++i) {
      if (!joint_.input_cotangents[i].valid()) continue;
      const Tensor sum = sum_of_input_[i];
      const Tensor addend = inner(summed(i));
      if (continues(i))
        output(addend, sum);
      else
        output(add(sum, addend.dtype() == sum.dtype() ? addend : cast(addend, sum.dtype())), sum);
    }
    for (size_t i = first_slice(); i < first_capture(); ++i)
      if (joint_.input_cotangents[i].valid()) {
        const Tensor row = inner(joint_.input_cotangents[i]);
        output(row, made_.valid() ? zeros_like(row) : row);
      }
  }

  std::vector<Tensor> emit_loop() {
    Attributes attributes = node_.attributes;
    attributes.set("carried", loop_.carried);
    attributes.set("sliced", loop_.sliced);
    attributes.set("reverse", !shape_.reverse);
    attributes.set("until", false);
    if (shape_.segments > 1)
      attributes.set("segments", int64_t{1});  // nothing is made a third time
    // The gradient of what all iterations read is a sum that goes from one to the next.
    if (shape_.parallel) attributes.set("parallel", false);
    if (shape_.until && !masked()) {
      loop_.operands.insert(loop_.operands.begin(), forward_.back());
      attributes.set("counted", true);
    } else if (shape_.counted) {
      loop_.operands.insert(loop_.operands.begin(), outer(node_.inputs[0]));
    }
    return builder_.emit(*node_.op, loop_.operands, std::move(attributes), {},
                         std::make_shared<const Graph>(loop_.body.take()));
  }

  void collect(const std::vector<Tensor>& found, std::vector<Tensor>& results) const {
    size_t next = 0;
    for (size_t c = 0; c < carried(); ++c)
      if (flows_[c]) results[operand(1 + c)] = found[next++];
    for (size_t i = first_capture(); i < body_.inputs().size(); ++i) {
      const Value cotangent = joint_.input_cotangents[i];
      if (!cotangent.valid()) continue;
      const DType dtype = joint_.graph.type(cotangent).dtype;
      const Tensor sum = found[next++];
      results[operand(i)] = sum.dtype() == dtype ? sum : cast(sum, dtype);
    }
    for (size_t i = first_slice(); i < first_capture(); ++i)
      if (joint_.input_cotangents[i].valid()) results[operand(i)] = found[next++];
  }

  GraphBuilder& builder_;
  const Node node_;
  const LoopShape shape_;
  const Graph& body_;
  const std::vector<Tensor>& cotangents_;
  std::vector<bool> wanted_;  // per input of the body: does its cotangent matter?
  std::vector<bool> flows_;   // per output of the body: does a cotangent come in?
  JointBody joint_;
  Residuals residuals_;
  std::vector<Tensor> forward_;          // results of the forward loop, residuals among them
  std::vector<size_t> residual_output_;  // per residual: which of forward_
  LoopUnderWay loop_;                    // the backward loop
  std::vector<Tensor> values_;           // per value of the joint graph: in the backward body
  std::vector<Tensor> sum_of_input_;     // running sums of the captured operands' cotangents
  std::vector<ContinuedSum> continued_;  // of segments: per input of the body
  Tensor index_, made_;
};

}  // namespace

std::vector<Tensor> loop_gradient(GraphBuilder& builder, int index,
                                  const std::vector<Tensor>& cotangents,
                                  const std::vector<bool>& wanted,
                                  std::vector<AugmentedLoop>& augmented) {
  const Node node = builder.graph().nodes()[static_cast<size_t>(index)];
  return LoopGradient(builder, node, cotangents).run(wanted, index, augmented);
}

}  // namespace fullbore
