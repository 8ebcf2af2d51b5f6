#include "fullbore/train/probed_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <utility>

#include "fullbore/base/check.h"
#include "fullbore/base/dtype.h"
#include "fullbore/ir/literal.h"
#include "fullbore/ops/ops.h"
#include "fullbore/passes/support/defined_rows.h"
#include "fullbore/passes/support/rewriter.h"

namespace fullbore {
namespace {

size_t place(Value value) { return static_cast<size_t>(value.id); }

// NaN if one element is, an infinity if one is and none is NaN.
Tensor largest_magnitude(Tensor x) {
  std::vector<int64_t> axes(static_cast<size_t>(x.rank()));
  std::iota(axes.begin(), axes.end(), 0);
  return axes.empty() ? abs(x) : reduce_max(abs(x), axes);
}

/// Writes a level and the loops in it.
class LevelWriter {
 public:
  LevelWriter(GraphBuilder& builder, ProbedLevel& level, std::vector<Tensor> inputs)
      : builder_(builder),
        level_(level),
        graph_(*level.graph),
        tensors_(static_cast<size_t>(graph_.value_count())) {
    level_.probes.assign(tensors_.size(), -1);
    for (size_t i = 0; i < inputs.size(); ++i)
      tensors_[place(graph_.inputs()[i].value)] = inputs[i];
    probe_inputs();
    for (size_t i = 0; i < graph_.nodes().size(); ++i) write(static_cast<int>(i));
  }

  std::vector<Tensor> probes;
  Tensor tensor(Value value) const { return tensors_[place(value)]; }

 private:
  void probe(Value value) {
    const Tensor tensor = tensors_[place(value)];
    if (!is_floating(tensor.dtype()) || tensor.type().elements() == 0) return;
    level_.probes[place(value)] = static_cast<int>(probes.size());
    probes.push_back(largest_magnitude(tensor));
  }

  // Of a body only rows: what else it is given is the value of another iteration, or of the graph around.
  void probe_inputs() {
    if (!level_.parent) {
      for (const Graph::Input& input : graph_.inputs()) probe(input.value);
      return;
    }
    const LoopShape shape(level_.loop());
    for (int i = 0; i < shape.sliced; ++i)
      probe(graph_.inputs()[static_cast<size_t>(1 + shape.carried + i)].value);
    if (!shape.until && !shape.counted) return;
    level_.executed = static_cast<int>(probes.size());
    probes.push_back(full(builder_, {DType::f32, {}}, 1));
  }

  void write(int index) {
    const Node& node = graph_.nodes()[static_cast<size_t>(index)];
    std::vector<Tensor> operands;
    for (const Value input : node.inputs) operands.push_back(tensors_[place(input)]);
    if (is_loop(node)) return write_loop(index, operands);
    const std::vector<Tensor> results =
        builder_.emit_like(node, operands_of_all_rows(node, std::move(operands)));
    for (size_t i = 0; i < results.size(); ++i) {
      tensors_[place(node.outputs[i])] = results[i];
      probe(node.outputs[i]);
    }
  }

  void write_loop(int index, const std::vector<Tensor>& operands) {
    const Node& node = graph_.nodes()[static_cast<size_t>(index)];
    const LoopShape shape(node);
    auto inner = std::make_unique<ProbedLevel>();
    inner->graph = node.body.get();
    inner->parent = &level_;
    inner->node = index;
    inner->first = static_cast<int>(probes.size());
    GraphBuilder body(node.body->name());
    std::vector<Tensor> inputs;
    for (const Graph::Input& input : node.body->inputs())
      inputs.push_back(body.input_like(input, node.body->type(input.value)));
    const LevelWriter writer(body, *inner, inputs);
    const auto& outputs = node.body->outputs();
    const auto results = static_cast<size_t>(shape.carried + shape.stacked);
    for (size_t i = 0; i < results; ++i)
      body.output(outputs[i].name, writer.tensor(outputs[i].value));
    for (size_t i = 0; i < writer.probes.size(); ++i)
      body.output(fmt::format("probe {}", i), writer.probes[i]);
    if (shape.until) body.output(outputs.back().name, writer.tensor(outputs.back().value));
    Node changed = node;
    changed.body = std::make_shared<const Graph>(body.take());
    const std::vector<Tensor> made = builder_.emit_like(changed, operands);
    for (size_t i = 0; i < results; ++i) {
      tensors_[place(node.outputs[i])] = made[i];
      probe(node.outputs[i]);
    }
    if (shape.until) tensors_[place(node.outputs.back())] = made.back();
    inner->first = static_cast<int>(probes.size());
    for (size_t i = 0; i < writer.probes.size(); ++i) probes.push_back(made[results + i]);
    level_.loops[index] = std::move(inner);
  }

  GraphBuilder& builder_;
  ProbedLevel& level_;
  const Graph& graph_;
  std::vector<Tensor> tensors_;
};

}  // namespace

ProbedGraph::ProbedGraph(const Graph& graph) : builder_("probed " + graph.name()) {
  top_.graph = &graph;
  std::vector<Tensor> inputs;
  for (const Graph::Input& input : graph.inputs())
    inputs.push_back(builder_.input_like(input, graph.type(input.value)));
  const LevelWriter writer(builder_, top_, inputs);
  for (size_t i = 0; i < writer.probes.size(); ++i)
    builder_.output(fmt::format("probe {}", i), writer.probes[i]);
}

ProbedGraph::~ProbedGraph() = default;

double ProbedGraph::read(const Program& program, const ProbedValue& value, int probe) const {
  std::vector<const ProbedLevel*> around;
  for (const ProbedLevel* level = value.level; level->parent; level = level->parent) {
    probe += level->first;
    around.insert(around.begin(), level);
  }
  FB_CHECK(around.size() == value.iterations.size());
  int64_t element = 0;
  for (size_t i = 0; i < around.size(); ++i)
    element = element * around[i]->iterations() + value.iterations[i];
  const Graph& graph = program.plan().graph;
  const DType dtype = graph.type(graph.outputs()[static_cast<size_t>(probe)].value).dtype;
  std::vector<std::byte> bytes(dtype_bytes(dtype));
  program.read_result(probe, bytes, element * static_cast<int64_t>(bytes.size()));
  return Literal::from_bytes({dtype, {}}, bytes.data()).at(0);
}

Health ProbedGraph::health(const Program& program, const ProbedValue& value) const {
  const int probe = value.level->probes[place(value.value)];
  if (probe < 0) return Health::kFinite;
  const double magnitude = read(program, value, probe);
  return std::isnan(magnitude)   ? Health::kNaN
         : std::isinf(magnitude) ? Health::kInfinite
                                 : Health::kFinite;
}

bool ProbedGraph::was_executed(const Program& program, const ProbedValue& value) const {
  return value.level->executed < 0 || read(program, value, value.level->executed) != 0;
}

Graph with_members_apart(const Graph& graph) {
  Rewriter rewriter(graph);
  for (const Node& node : graph.nodes()) {
    if (node.body && !is_loop(node))
      rewriter.map(node,
                   inline_graph(rewriter.builder(), *node.body, rewriter.tensors(node.inputs)));
    else
      rewriter.copy(node, rewritten_body(node, with_members_apart));
  }
  return rewriter.finish();
}

}  // namespace fullbore
