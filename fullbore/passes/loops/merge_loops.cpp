#include "fullbore/passes/loops/merge_loops.h"

#include <fmt/format.h>

#include <algorithm>

#include "fullbore/ir/loop.h"
#include "fullbore/ir/tensor.h"
#include "fullbore/passes/canonicalize/common_subexpression_elimination.h"

namespace fullbore {
namespace {

LoopShape shape_of(const LoopCall& loop) {
  return {loop.node.attributes, static_cast<int>(loop.inputs.size()), *loop.node.body};
}

// Input of the body that operand `i` of the node feeds: the index comes first, the count never.
size_t body_input(const LoopShape& shape, size_t i) {
  return i + 1 - static_cast<size_t>(shape.first_carried());
}

std::string unused_name(const Graph& graph) {
  for (int i = 0;; ++i) {
    std::string name = fmt::format("capture{}", i);
    if (graph.find_input(name) < 0) return name;
  }
}

/// A body under construction from the bodies of loops.
class BodyBuilder {
 public:
  explicit BodyBuilder(const Graph& like) : builder_(like.name()) {}

  Tensor input(const Graph& from, size_t index) {
    const Graph::Input& input = from.inputs()[index];
    const bool taken = builder_.graph().find_input(input.name) >= 0;
    return builder_.input(taken ? unused_name(builder_.graph()) : input.name, Role::local,
                          from.type(input.value));
  }
  std::vector<Tensor> inline_body(const Graph& body, const std::vector<Tensor>& inputs) {
    return inline_graph(builder_, body, inputs);
  }
  void output(const Graph& like, size_t index, Tensor tensor) {
    builder_.output(like.outputs()[index].name, tensor);
  }
  Graph take() { return builder_.take(); }

 private:
  GraphBuilder builder_;
};

// The body's outputs without repetitions among the stacked ones.
// -> per output of the body, which of the result's it is
std::vector<int> keep_distinct_outputs(const LoopShape& shape, const Graph& body, Graph& result) {
  BodyBuilder builder(body);
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < body.inputs().size(); ++i) inputs.push_back(builder.input(body, i));
  const std::vector<Tensor> outputs = builder.inline_body(body, inputs);
  std::vector<int> places;
  std::vector<Value> stacked;
  const auto first = static_cast<size_t>(shape.carried);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Value value = outputs[i].value();
    const bool may_repeat = i >= first && !(shape.until && i + 1 == outputs.size());
    auto known = stacked.end();
    if (may_repeat) known = std::find(stacked.begin(), stacked.end(), value);
    if (known != stacked.end()) {
      places.push_back(static_cast<int>(first) + static_cast<int>(known - stacked.begin()));
      continue;
    }
    places.push_back(static_cast<int>(i < first ? i : first + stacked.size()));
    if (may_repeat) stacked.push_back(value);
    builder.output(body, i, outputs[i]);
  }
  result = builder.take();
  return places;
}

// Drops operands (of the sliced, then of the captured ones) that are read already.
void keep_distinct_operands(LoopCall& loop) {
  const LoopShape shape = shape_of(loop);
  const Graph& body = *loop.node.body;
  BodyBuilder builder(body);
  std::vector<Tensor> inputs = {builder.input(body, 0)};
  std::vector<int> kept(loop.inputs.begin(), loop.inputs.begin() + shape.first_carried());
  std::vector<Tensor> kept_inputs(kept.size());  // parallel to kept; the count has none
  int64_t sliced = 0;
  for (size_t i = kept.size(); i < loop.inputs.size(); ++i) {
    const bool carried = i < static_cast<size_t>(shape.first_sliced());
    const bool captured = i >= static_cast<size_t>(shape.first_captured());
    auto known = kept.end();
    if (!carried) {
      const auto begin = captured ? kept.begin() + shape.first_sliced() + sliced
                                  : kept.begin() + shape.first_sliced();
      known = std::find(begin, kept.end(), loop.inputs[i]);
    }
    if (known != kept.end()) {
      inputs.push_back(kept_inputs[static_cast<size_t>(known - kept.begin())]);
      continue;
    }
    inputs.push_back(builder.input(body, body_input(shape, i)));
    kept.push_back(loop.inputs[i]);
    kept_inputs.push_back(inputs.back());
    if (!carried && !captured) ++sliced;
  }
  if (kept.size() == loop.inputs.size()) return;
  const std::vector<Tensor> outputs = builder.inline_body(body, inputs);
  for (size_t i = 0; i < outputs.size(); ++i) builder.output(body, i, outputs[i]);
  loop.node.body = std::make_shared<const Graph>(builder.take());
  loop.node.attributes.set("sliced", sliced);
  loop.inputs = std::move(kept);
}

bool same_output(const Graph& graph, size_t a, size_t b) {
  return graph.outputs()[a].value == graph.outputs()[b].value;
}

}  // namespace

size_t LoopCall::results() const {
  const LoopShape shape = shape_of(*this);
  return static_cast<size_t>(shape.carried + shape.stacked + (shape.until ? 1 : 0));
}

std::vector<int> merge_within(LoopCall& loop) {
  keep_distinct_operands(loop);
  Graph body;
  std::vector<int> places = keep_distinct_outputs(
      shape_of(loop), common_subexpression_elimination(*loop.node.body, {}), body);
  loop.node.body = std::make_shared<const Graph>(std::move(body));
  return places;
}

std::optional<MergedLoops> merge_loops(const LoopCall& first, const LoopCall& second,
                                       const std::function<bool(int)>& exists_before_first) {
  const LoopShape shape = shape_of(first);
  const Graph& first_body = *first.node.body;
  const Graph& second_body = *second.node.body;
  const auto captures = static_cast<size_t>(shape.first_captured());

  // One body that has the nodes of both, on common inputs; then what is equal in it is merged.
  MergedLoops merged{first, {}, {}};
  BodyBuilder builder(first_body);
  std::vector<Tensor> first_inputs, second_inputs;
  for (size_t i = 0; i < first_body.inputs().size(); ++i)
    first_inputs.push_back(builder.input(first_body, i));
  second_inputs.assign(first_inputs.begin(),
                       first_inputs.begin() + static_cast<int64_t>(body_input(shape, captures)));
  for (size_t i = captures; i < second.inputs.size(); ++i) {
    const auto from = first.inputs.begin() + shape.first_captured();
    const auto known = std::find(from, first.inputs.end(), second.inputs[i]);
    if (known != first.inputs.end()) {
      const auto at = static_cast<size_t>(known - first.inputs.begin());
      second_inputs.push_back(first_inputs[body_input(shape, at)]);
      continue;
    }
    if (!exists_before_first(second.inputs[i])) return std::nullopt;
    merged.loop.inputs.push_back(second.inputs[i]);
    second_inputs.push_back(builder.input(second_body, body_input(shape, i)));
  }
  const std::vector<Tensor> first_outputs = builder.inline_body(first_body, first_inputs);
  const std::vector<Tensor> second_outputs = builder.inline_body(second_body, second_inputs);
  for (size_t i = 0; i < first_outputs.size(); ++i) builder.output(first_body, i, first_outputs[i]);
  for (size_t i = 0; i < second_outputs.size(); ++i)
    builder.output(second_body, i, second_outputs[i]);
  const Graph both = common_subexpression_elimination(builder.take(), {});

  const size_t offset = first_outputs.size();
  for (size_t c = 0; c < static_cast<size_t>(shape.carried); ++c)
    if (!same_output(both, c, offset + c)) return std::nullopt;
  if (shape.until && !same_output(both, offset - 1, both.outputs().size() - 1)) return std::nullopt;

  // carried, stacked of the first, stacked of the second, stop
  const auto carried = static_cast<size_t>(shape.carried);
  const size_t stop = shape.until ? 1 : 0;
  std::vector<size_t> order;
  for (size_t i = 0; i < offset - stop; ++i) order.push_back(i);
  for (size_t i = offset + carried; i < both.outputs().size() - stop; ++i) order.push_back(i);
  if (shape.until) order.push_back(offset - 1);
  BodyBuilder ordered(both);
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < both.inputs().size(); ++i) inputs.push_back(ordered.input(both, i));
  const std::vector<Tensor> outputs = ordered.inline_body(both, inputs);
  for (size_t i : order) ordered.output(both, i, outputs[i]);
  merged.loop.node.body = std::make_shared<const Graph>(ordered.take());
  const std::vector<int> places = merge_within(merged.loop);

  for (size_t i = 0; i < offset; ++i)
    merged.first.push_back(i < offset - stop ? places[i] : places.back());
  for (size_t i = 0; i < second_outputs.size(); ++i) {
    const bool is_stop = i + stop >= second_outputs.size() && shape.until;
    merged.second.push_back(is_stop       ? places.back()
                            : i < carried ? places[i]
                                          : places[offset - stop + i - carried]);
  }
  return merged;
}

}  // namespace fullbore
