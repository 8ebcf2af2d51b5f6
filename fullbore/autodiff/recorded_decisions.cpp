#include "fullbore/autodiff/recorded_decisions.h"

#include <fmt/format.h>

#include <algorithm>

#include "fullbore/ir/loop.h"
#include "fullbore/ir/op_def.h"
#include "fullbore/ir/tensor.h"

namespace fullbore {
namespace {

size_t place(Value value) { return static_cast<size_t>(value.id); }

/// A graph, and which of its values differ from one iteration of the loop in question to the next.
class Varying {
 public:
  Varying(const Graph& graph, const std::vector<bool>& inputs)
      : graph_(graph), varies_(static_cast<size_t>(graph.value_count()), false) {
    for (size_t i = 0; i < inputs.size(); ++i) varies_[place(graph.inputs()[i].value)] = inputs[i];
    for (const Node& node : graph.nodes())
      for (Value output : node.outputs)
        varies_[place(output)] = std::any_of(node.inputs.begin(), node.inputs.end(),
                                             [&](Value input) { return varies_[place(input)]; });
  }

  bool is_decision(const Node& node, Value output) const {
    return !is_floating(graph_.type(output).dtype) &&
           std::any_of(node.inputs.begin(), node.inputs.end(), [&](Value input) {
             return varies_[place(input)] && is_floating(graph_.type(input).dtype);
           });
  }
  bool decides_all(const Node& node) const {
    return std::all_of(node.outputs.begin(), node.outputs.end(),
                       [&](Value output) { return is_decision(node, output); });
  }
  Varying within(const Node& loop) const {
    const LoopShape shape(loop);
    std::vector<bool> inputs(loop.body->inputs().size(), false);
    for (size_t i = 1; i < inputs.size(); ++i) {
      const size_t operand = i - 1 + static_cast<size_t>(shape.first_carried());
      inputs[i] = i <= static_cast<size_t>(shape.carried) || varies_[place(loop.inputs[operand])];
    }
    return {*loop.body, inputs};
  }
  // Of the whole graph, those of nested loops among them.
  size_t decisions() const {
    size_t count = 0;
    for (const Node& node : graph_.nodes())
      if (is_loop(node))
        count += within(node).decisions();
      else
        for (Value output : node.outputs) count += is_decision(node, output) ? 1 : 0;
    return count;
  }

 private:
  const Graph& graph_;
  std::vector<bool> varies_;
};

std::vector<Tensor> look_up(const std::vector<Tensor>& values, const std::vector<Value>& of) {
  std::vector<Tensor> result;
  for (Value value : of) result.push_back(values[place(value)]);
  return result;
}

void assign(std::vector<Tensor>& values, const std::vector<Value>& of,
            const std::vector<Tensor>& results) {
  for (size_t i = 0; i < of.size(); ++i) values[place(of[i])] = results[i];
}

Node with_body(const Node& loop, GraphBuilder& body) {
  Node changed = loop;
  changed.body = std::make_shared<const Graph>(body.take());
  return changed;
}

struct Recording {
  std::vector<Tensor> results;  ///< the loop's own
  std::vector<Tensor>
      records;  ///< [iterations, ...] each: its decisions, in the order of the nodes that take them
};

// The loop with its decisions stacked behind what it stacks already.
Recording emit_recording(GraphBuilder& to, const Node& loop, const std::vector<Tensor>& operands,
                         const Varying& varying) {
  const LoopShape shape(loop);
  const Graph& from = *loop.body;
  GraphBuilder body(from.name());
  std::vector<Tensor> values(static_cast<size_t>(from.value_count()));
  for (const Graph::Input& input : from.inputs())
    values[place(input.value)] = body.input_like(input, from.type(input.value));
  std::vector<Tensor> decisions;
  for (const Node& node : from.nodes()) {
    const std::vector<Tensor> inputs = look_up(values, node.inputs);
    if (is_loop(node)) {
      const Recording nested = emit_recording(body, node, inputs, varying.within(node));
      assign(values, node.outputs, nested.results);
      decisions.insert(decisions.end(), nested.records.begin(), nested.records.end());
      continue;
    }
    assign(values, node.outputs, body.emit_like(node, inputs));
    for (Value output : node.outputs)
      if (varying.is_decision(node, output)) decisions.push_back(values[place(output)]);
  }
  const auto own = static_cast<size_t>(shape.carried + shape.stacked);
  for (size_t i = 0; i < from.outputs().size(); ++i) {
    if (i == own)
      for (const Tensor& decision : decisions) body.output("", decision);
    body.output("", values[place(from.outputs()[i].value)]);
  }
  if (!shape.until)
    for (const Tensor& decision : decisions) body.output("", decision);

  const std::vector<Tensor> all = to.emit_like(with_body(loop, body), operands);
  const auto end = all.begin() + static_cast<std::ptrdiff_t>(own);
  const auto last = end + static_cast<std::ptrdiff_t>(decisions.size());
  Recording recording{{all.begin(), end}, {end, last}};
  if (shape.until) recording.results.push_back(all.back());
  return recording;
}

using Record = std::vector<Tensor>::const_iterator;

// The loop with its decisions read from `record` on, which is moved behind them.
std::vector<Tensor> emit_replaying(GraphBuilder& to, const Node& loop,
                                   const std::vector<Tensor>& operands, const Varying& varying,
                                   Record& record) {
  const LoopShape shape(loop);
  const Graph& from = *loop.body;
  GraphBuilder body(from.name());
  std::vector<Tensor> values(static_cast<size_t>(from.value_count())), rows;
  const auto count = static_cast<std::ptrdiff_t>(varying.decisions());
  const Record end = record + count;
  const auto captured = static_cast<size_t>(1 + shape.carried + shape.sliced);
  for (size_t i = 0; i <= from.inputs().size(); ++i) {
    if (i == captured)
      for (Record each = record; each != end; ++each)
        rows.push_back(body.input(fmt::format("decision{}", each - record), Role::local,
                                  {each->dtype(), each->shape().without(0)}));
    if (i == from.inputs().size()) break;
    const Graph::Input& input = from.inputs()[i];
    values[place(input.value)] = body.input_like(input, from.type(input.value));
  }
  Record row = rows.begin();
  for (const Node& node : from.nodes()) {
    const std::vector<Tensor> inputs = look_up(values, node.inputs);
    if (is_loop(node)) {
      assign(values, node.outputs, emit_replaying(body, node, inputs, varying.within(node), row));
      continue;
    }
    if (!varying.decides_all(node)) assign(values, node.outputs, body.emit_like(node, inputs));
    for (Value output : node.outputs)
      if (varying.is_decision(node, output)) values[place(output)] = *row++;
  }
  for (const Graph::Output& output : from.outputs())
    body.output(output.name, values[place(output.value)]);

  std::vector<Tensor> all = operands;
  all.insert(all.begin() + shape.first_captured(), record, end);
  record = end;
  Node changed = with_body(loop, body);
  changed.attributes.set("sliced", shape.sliced + static_cast<int64_t>(count));
  return to.emit_like(changed, all);
}

class Recorder {
 public:
  Recorder(const JointBody& joint, const std::vector<bool>& varying_inputs)
      : from_(joint),
        varying_(joint.graph, varying_inputs),
        to_(joint.graph.name()),
        first_(static_cast<size_t>(joint.graph.value_count())),
        again_(first_.size()) {}

  RecordedBody run() {
    for (const Graph::Input& input : from_.graph.inputs())
      first_[place(input.value)] = again_[place(input.value)] =
          to_.input_like(input, from_.graph.type(input.value));
    const std::vector<Node>& nodes = from_.graph.nodes();
    for (int i = 0; i < from_.forward_nodes; ++i) add(nodes[static_cast<size_t>(i)]);
    RecordedBody result;
    result.joint.forward_nodes = node_count();
    for (size_t i = static_cast<size_t>(from_.forward_nodes); i < nodes.size(); ++i)
      assign(again_, nodes[i].outputs, to_.emit_like(nodes[i], look_up(again_, nodes[i].inputs)));
    const auto mapped = [](const std::vector<Value>& values, const std::vector<Tensor>& by) {
      std::vector<Value> all;
      for (Value value : values) all.push_back(value.valid() ? by[place(value)].value() : value);
      return all;
    };
    result.joint.outputs = mapped(from_.outputs, first_);
    result.joint.output_cotangents = mapped(from_.output_cotangents, first_);
    result.joint.input_cotangents = mapped(from_.input_cotangents, again_);
    result.joint.graph = to_.take();
    kept_.resize(result.joint.graph.nodes().size(), false);
    result.kept = std::move(kept_);
    return result;
  }

 private:
  int node_count() const { return static_cast<int>(to_.graph().nodes().size()); }

  void keep_last() {
    kept_.resize(static_cast<size_t>(node_count()), false);
    kept_.back() = true;
  }

  void add(const Node& node) {
    const std::vector<Tensor> first = look_up(first_, node.inputs);
    const std::vector<Tensor> again = look_up(again_, node.inputs);
    if (is_loop(node)) return add_loop(node, first, again);
    assign(first_, node.outputs, to_.emit_like(node, first));
    bool decides = false, same = true;
    for (Value output : node.outputs) decides |= varying_.is_decision(node, output);
    for (size_t i = 0; i < first.size(); ++i) same &= first[i].value() == again[i].value();
    if (decides) keep_last();
    if (varying_.decides_all(node) || (same && !decides))
      assign(again_, node.outputs, look_up(first_, node.outputs));
    else
      assign(again_, node.outputs, to_.emit_like(node, again));
    for (Value output : node.outputs)
      if (varying_.is_decision(node, output)) again_[place(output)] = first_[place(output)];
  }

  void add_loop(const Node& node, const std::vector<Tensor>& first,
                const std::vector<Tensor>& again) {
    const Varying within = varying_.within(node);
    const Recording recording = emit_recording(to_, node, first, within);
    assign(first_, node.outputs, recording.results);
    keep_last();
    Record record = recording.records.begin();
    assign(again_, node.outputs, emit_replaying(to_, node, again, within, record));
  }

  const JointBody& from_;
  Varying varying_;
  GraphBuilder to_;
  std::vector<Tensor> first_, again_;  // per value of the joint graph
  std::vector<bool> kept_;
};

}  // namespace

RecordedBody record_decisions(const JointBody& joint, const Graph& body, int carried) {
  std::vector<bool> varying(body.inputs().size(), false);
  std::fill_n(varying.begin() + 1, carried, true);
  return Recorder(joint, varying).run();
}

}  // namespace fullbore
