#include "fullbore/passes/gemm/quantize_linears.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "fullbore/ir/loop.h"
#include "fullbore/ir/op_def.h"
#include "fullbore/ops/op_handles.h"
#include "fullbore/ops/quantized_linear.h"
#include "fullbore/passes/support/rewriter.h"

namespace fullbore {
namespace {

/// Of each input of a graph: is it a parameter in question?
using Marks = std::vector<bool>;

/// Index of the marked input that the value is, or -1.
int marked_input(const Graph& graph, const Marks& marks, Value value) {
  for (size_t i = 0; i < marks.size(); ++i)
    if (marks[i] && graph.inputs()[i].value == value) return static_cast<int>(i);
  return -1;
}

bool reads_marked(const Graph& graph, const Marks& marks, const Node& node) {
  return std::any_of(node.inputs.begin(), node.inputs.end(),
                     [&](Value input) { return marked_input(graph, marks, input) >= 0; });
}

/// Index among the loop's operands of what its body's input `input` stands for, if that is captured; else -1.
int captured_operand(const LoopShape& loop, size_t input) {
  const int place = static_cast<int>(input) - (1 + loop.carried + loop.sliced);
  return place < 0 ? -1 : loop.first_captured() + place;
}

Marks body_marks(const Graph& graph, const Marks& marks, const Node& node) {
  const LoopShape loop(node);
  Marks result(node.body->inputs().size(), false);
  for (size_t i = 0; i < result.size(); ++i)
    if (const int operand = captured_operand(loop, i); operand >= 0)
      result[i] = marked_input(graph, marks, node.inputs[static_cast<size_t>(operand)]) >= 0;
  return result;
}

bool is_linear(const Graph& graph, const Node& node) {
  if (node.op != op::matmul) return false;
  const TensorType& weight = graph.type(node.inputs[1]);
  return weight.shape.rank() == 2 && weight.shape[1] >= 1 && weight.shape[1] <= kMostInt8Depth &&
         node.attributes.get<bool>("transpose_b") && !node.attributes.get<bool>("transpose_a") &&
         graph.type(node.outputs[0]).dtype == graph.type(node.inputs[0]).dtype;
}

// Composites that read what is marked become what they are made of, one layer of them.
Graph expand_readers(const Graph& graph, const Marks& marks, bool& expanded) {
  Rewriter rewriter(graph);
  for (const Node& node : graph.nodes()) {
    if (node.op->decompose && reads_marked(graph, marks, node)) {
      const Origin origin(rewriter.builder(), node);
      const std::vector<Tensor> operands = rewriter.tensors(node.inputs);
      rewriter.map(node, node.op->decompose({operands, node.attributes, origin.loc()}));
      expanded = true;
    } else if (is_loop(node)) {
      rewriter.copy(node, rewritten_body(node, [&](const Graph& body) {
                      return expand_readers(body, body_marks(graph, marks, node), expanded);
                    }));
    } else {
      rewriter.copy(node);
    }
  }
  return rewriter.finish();
}

/// A graph some of whose inputs are read in 8 bits: weight and scale of each of them follow behind the inputs
/// that are still there.
struct Rewritten {
  Graph graph;
  std::vector<size_t> kept;       ///< of the old inputs
  std::vector<size_t> quantized;  ///< of the old inputs
};

class Quantizer {
 public:
  Quantizer(const Graph& from, const Marks& marks)
      : from_(from),
        marks_(marks),
        builder_(from.name()),
        values_(static_cast<size_t>(from.value_count())),
        forms_(marks.size()) {}

  Rewritten run() {
    for (const Graph::Input& input : from_.inputs())
      tensor(input.value) = builder_.input_like(input, from_.type(input.value));
    for (size_t i = 0; i < marks_.size(); ++i)
      if (marks_[i]) forms_[i] = declare(from_.inputs()[i]);
    for (const Node& node : from_.nodes()) {
      const std::vector<Tensor> results = rewrite(node);
      for (size_t i = 0; i < results.size(); ++i) tensor(node.outputs[i]) = results[i];
    }
    for (const Graph::Output& output : from_.outputs())
      builder_.output(output.name, tensor(output.value), output.updates);
    return without_unread(builder_.take());
  }

 private:
  struct Form {
    Tensor weight, scale;
  };

  Tensor& tensor(Value value) { return values_[static_cast<size_t>(value.id)]; }

  Form declare(const Graph::Input& input) {
    const Shape& shape = from_.type(input.value).shape;
    const auto form = [&](std::string name, bool scales, TensorType type) {
      Graph::Input like{std::move(name), Role::local, {}};
      if (input.role != Role::local) {
        like.role = Role::frozen;
        like.derived = {.parameter = input.name, .dtype = DType::i8, .scales = scales};
      }
      return builder_.input_like(like, std::move(type));
    };
    return {form(int8_weight_name(input.name), false, {DType::i8, shape}),
            form(int8_scale_name(input.name), true, {DType::f32, {shape[0]}})};
  }

  std::vector<Tensor> rewrite(const Node& node) {
    if (is_loop(node)) return rewrite_loop(node);
    if (is_linear(from_, node))
      if (const int input = marked_input(from_, marks_, node.inputs[1]); input >= 0) {
        const Origin origin(builder_, node);
        const Form& form = forms_[static_cast<size_t>(input)];
        return {quantized_linear(tensor(node.inputs[0]), form.weight, form.scale, origin.loc())};
      }
    std::vector<Tensor> operands;
    for (const Value input : node.inputs) operands.push_back(tensor(input));
    return builder_.emit_like(node, operands);
  }

  std::vector<Tensor> rewrite_loop(const Node& node) {
    const LoopShape loop(node);
    Rewritten body = Quantizer(*node.body, body_marks(from_, marks_, node)).run();
    const auto operand = [&](size_t body_input) {
      return node.inputs[static_cast<size_t>(captured_operand(loop, body_input))];
    };
    std::vector<Tensor> operands;
    for (int i = 0; i < loop.first_captured(); ++i)
      operands.push_back(tensor(node.inputs[static_cast<size_t>(i)]));
    for (const size_t input : body.kept)
      if (captured_operand(loop, input) >= 0) operands.push_back(tensor(operand(input)));
    for (const size_t input : body.quantized) {
      const Form& form = forms_[static_cast<size_t>(marked_input(from_, marks_, operand(input)))];
      operands.insert(operands.end(), {form.weight, form.scale});
    }
    const Origin origin(builder_, node);
    return builder_.emit(*node.op, operands, node.attributes, origin.loc(),
                         std::make_shared<const Graph>(std::move(body.graph)));
  }

  /// `whole` has the old inputs, then two for each that is marked.
  Rewritten without_unread(const Graph& whole) const {
    std::vector<int> readers = whole.use_counts();
    const auto is_read = [&](size_t input) {
      return readers[static_cast<size_t>(whole.inputs()[input].value.id)] > 0;
    };
    Rewritten result;
    GraphBuilder builder(whole.name());
    std::vector<Tensor> inputs;
    std::vector<int> now(marks_.size(), -1);
    const auto keep = [&](size_t i) {
      const Graph::Input& input = whole.inputs()[i];
      inputs.push_back(builder.input_like(input, whole.type(input.value)));
    };
    for (size_t i = 0; i < marks_.size(); ++i) {
      const bool updated = std::any_of(
          whole.outputs().begin(), whole.outputs().end(),
          [&](const Graph::Output& output) { return output.updates == static_cast<int>(i); });
      if (!marks_[i] || updated || is_read(i)) {
        now[i] = static_cast<int>(result.kept.size());
        result.kept.push_back(i);
        keep(i);
      } else {
        inputs.emplace_back();
      }
    }
    size_t form = marks_.size();
    for (size_t i = 0; i < marks_.size(); ++i) {
      if (!marks_[i]) continue;
      const bool read = is_read(form);
      if (read) result.quantized.push_back(i);
      for (int part = 0; part < 2; ++part, ++form) read ? keep(form) : void(inputs.emplace_back());
    }
    const std::vector<Tensor> outputs = inline_graph(builder, whole, inputs);
    for (size_t i = 0; i < outputs.size(); ++i) {
      const Graph::Output& output = whole.outputs()[i];
      builder.output(output.name, outputs[i],
                     output.updates < 0 ? -1 : now[static_cast<size_t>(output.updates)]);
    }
    result.graph = builder.take();
    return result;
  }

  const Graph& from_;
  const Marks marks_;
  GraphBuilder builder_;
  std::vector<Tensor> values_;
  std::vector<Form> forms_;
};

}  // namespace

std::string int8_weight_name(const std::string& parameter) { return parameter + ".int8"; }
std::string int8_scale_name(const std::string& parameter) { return parameter + ".int8_scale"; }

QuantizedLinears quantize_linears(const Graph& graph, const std::set<std::string>& parameters) {
  Marks marks;
  for (const Graph::Input& input : graph.inputs())
    marks.push_back(parameters.contains(input.name) && graph.type(input.value).shape.rank() == 2);
  Graph expanded = graph;
  for (bool again = true; again;) {
    again = false;
    expanded = expand_readers(expanded, marks, again);
  }
  Rewritten rewritten = Quantizer(expanded, marks).run();
  QuantizedLinears result;
  for (const size_t input : rewritten.quantized) result.replaced.insert(graph.inputs()[input].name);
  for (const size_t input : rewritten.kept)
    if (const std::string& name = graph.inputs()[input].name; result.replaced.contains(name))
      result.kept.insert(name);
  result.graph = std::move(rewritten.graph);
  return result;
}

}  // namespace fullbore
