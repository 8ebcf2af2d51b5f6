#include "fullbore/passes/precision/reduce_residual_precision.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "fullbore/ir/loop.h"
#include "fullbore/ir/op_def.h"
#include "fullbore/ops/op_handles.h"
#include "fullbore/ops/ops.h"
#include "fullbore/passes/precision/narrowed.h"
#include "fullbore/passes/precision/pinned_values.h"
#include "fullbore/passes/support/rewriter.h"

namespace fullbore {
namespace {

// Rows so much shorter than the loop's longest are numbers of whole rows: they are few, and carry what
// a row's elements have in common.
constexpr int64_t kFewerBy = 16;

size_t place(Value value) { return static_cast<size_t>(value.id); }

bool is_cast(const Graph& graph, const Node& node, DType from, DType to) {
  return node.op == op::cast && graph.type(node.inputs[0]).dtype == from &&
         graph.type(node.outputs[0]).dtype == to;
}

/// Of a loop's body, what the loop gives and takes in the low type; empty: nothing.
struct LowBorders {
  std::vector<bool> inputs;
  std::vector<bool> outputs;
};

class ResidualNarrowing {
 public:
  ResidualNarrowing(const Graph& graph, const Target& target, PinnedValues kept,
                    LowBorders borders = {})
      : graph_(graph),
        target_(target),
        kept_(std::move(kept)),
        borders_(std::move(borders)),
        narrow_(static_cast<size_t>(graph.value_count()), false) {
    borders_.inputs.resize(graph.inputs().size());
    borders_.outputs.resize(graph.outputs().size());
    // Rows of rows, which inner loops alone read, stay as they are.
    for (size_t i = 0; i < graph.inputs().size(); ++i)
      if (borders_.inputs[i] && read_low_alone(graph.inputs()[i].value))
        narrow_[place(graph.inputs()[i].value)] = true;
    for (const Node& node : graph.nodes())
      if (is_loop(node)) choose_residuals(node);
  }

  Graph run() {
    std::vector<TensorType> types;
    for (const Graph::Input& input : graph_.inputs()) {
      types.push_back(graph_.type(input.value));
      if (is_narrow(input.value)) types.back().dtype = target_.precision;
    }
    Rewriter rewriter(graph_, types);
    for (const Node& node : graph_.nodes()) {
      if (is_loop(node))
        rewrite_loop(rewriter, node);
      else
        rewriter.copy(node);
    }
    return rewriter.finish();
  }

 private:
  bool is_narrow(Value value) const { return narrow_[place(value)]; }

  void choose_residuals(const Node& loop) {
    const LoopShape shape(loop);
    // From what a segment begins with, iterations are computed again: from rounded numbers they would be others.
    if (shape.segments > 1) return;
    const Graph& body = *loop.body;
    const auto row = [&](int residual) {
      return body.outputs()[static_cast<size_t>(shape.carried + residual)].value;
    };
    int64_t longest = 0;
    for (int s = 0; s < shape.stacked; ++s)
      longest = std::max(longest, body.type(row(s)).elements());
    for (int s = 0; s < shape.stacked; ++s) {
      const Value residual = loop.outputs[static_cast<size_t>(shape.carried + s)];
      const Node* const maker = body.producer_node(row(s));
      if (body.type(row(s)).dtype == DType::f32 &&
          body.type(row(s)).elements() * kFewerBy > longest &&
          !stays_f32(maker ? *maker : loop, target_) && !makes_f32(body, row(s), target_) &&
          !kept_.is_pinned(residual) && read_low_alone(residual))
        narrow_[place(residual)] = true;
    }
  }

  // Do only slices of loops read it, or what the loop around takes in the low type?
  bool read_low_alone(Value residual) const {
    bool read = false;
    for (const Node& node : graph_.nodes())
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        if (node.inputs[i] != residual) continue;
        if (!is_loop(node)) return false;
        const LoopShape shape(node);
        if (static_cast<int>(i) < shape.first_sliced() ||
            static_cast<int>(i) >= shape.first_captured())
          return false;
        read = true;
      }
    for (size_t i = 0; i < graph_.outputs().size(); ++i) {
      if (graph_.outputs()[i].value != residual) continue;
      if (!borders_.outputs[i]) return false;
      read = true;
    }
    return read;
  }

  void rewrite_loop(Rewriter& rewriter, const Node& loop) const {
    const Graph inner =
        ResidualNarrowing(*loop.body, target_, kept_.of_body(loop), borders_of(loop)).run();
    Node changed = loop;
    changed.body = std::make_shared<const Graph>(with_low_borders(loop, inner));
    const Origin origin(rewriter.builder(), loop);
    const std::vector<Tensor> results =
        rewriter.builder().emit_like(changed, rewriter.tensors(loop.inputs));
    for (size_t i = 0; i < results.size(); ++i) rewriter.map(loop.outputs[i], results[i].value());
  }

  LowBorders borders_of(const Node& loop) const {
    const LoopShape shape(loop);
    LowBorders borders{std::vector<bool>(loop.body->inputs().size()),
                       std::vector<bool>(loop.body->outputs().size())};
    for (size_t i = 1; i < borders.inputs.size(); ++i)
      borders.inputs[i] =
          is_narrow(loop.inputs[i - 1 + static_cast<size_t>(shape.first_carried())]);
    for (size_t i = static_cast<size_t>(shape.carried); i < loop.outputs.size(); ++i)
      if (i < borders.outputs.size()) borders.outputs[i] = is_narrow(loop.outputs[i]);
    return borders;
  }

  // The body with low slices where the operands have become low, and low rows where they are to.
  Graph with_low_borders(const Node& loop, const Graph& body) const {
    const LoopShape shape(loop);
    GraphBuilder builder(body.name());
    std::vector<Tensor> now(static_cast<size_t>(body.value_count()));
    std::map<Value, Tensor> slices;  // of the old body: what is read of them is low
    for (size_t i = 0; i < body.inputs().size(); ++i) {
      const Graph::Input& input = body.inputs()[i];
      TensorType type = body.type(input.value);
      const int operand = static_cast<int>(i) - 1 + shape.first_carried();
      const bool low = i > 0 && is_narrow(loop.inputs[static_cast<size_t>(operand)]);
      if (low) type.dtype = target_.precision;
      now[place(input.value)] = builder.input_like(input, type);
      if (low) slices[input.value] = now[place(input.value)];
    }
    for (const Node& node : body.nodes()) {
      const auto slice = node.inputs.empty() ? slices.end() : slices.find(node.inputs[0]);
      if (slice != slices.end() && is_cast(body, node, DType::f32, target_.precision)) {
        now[place(node.outputs[0])] = slice->second;
        continue;
      }
      const Origin origin(builder, node);
      std::vector<Tensor> operands;
      for (Value operand : node.inputs) {
        Tensor& value = now[place(operand)];
        if (value.dtype() != body.type(operand).dtype) value = cast(value, DType::f32);
        operands.push_back(value);
      }
      const std::vector<Tensor> results = builder.emit_like(node, operands);
      for (size_t i = 0; i < results.size(); ++i) now[place(node.outputs[i])] = results[i];
    }
    for (size_t i = 0; i < body.outputs().size(); ++i) {
      const Value old = body.outputs()[i].value;
      const bool stacked = i >= static_cast<size_t>(shape.carried) && i < loop.outputs.size();
      const bool low = stacked && is_narrow(loop.outputs[i]);
      const Node* const maker = body.producer_node(old);
      const Origin origin(builder, maker ? *maker : loop);
      Tensor value = now[place(old)];
      if (low)
        value = narrowed(value, target_.precision);
      else if (value.dtype() != body.type(old).dtype)
        value = cast(value, body.type(old).dtype);
      builder.output(body.outputs()[i].name, value);
    }
    return builder.take();
  }

  const Graph& graph_;
  const Target& target_;
  PinnedValues kept_;
  LowBorders borders_;
  std::vector<bool> narrow_;  ///< per value: a residual that becomes low, or an input that has
};

}  // namespace

Graph reduce_residual_precision(const Graph& graph, const Target& target) {
  if (target.precision == DType::f32) return graph;
  return ResidualNarrowing(graph, target, PinnedValues(graph)).run();
}

}  // namespace fullbore
