#include "fullbore/passes/fusion/fuse_epilogues.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "fullbore/ir/loop.h"
#include "fullbore/ir/op_def.h"
#include "fullbore/ops/ops.h"
#include "fullbore/passes/fusion/epilogue_rules.h"
#include "fullbore/passes/support/rewriter.h"

namespace fullbore {
namespace {

size_t place(Value value) { return static_cast<size_t>(value.id); }
size_t at(int index) { return static_cast<size_t>(index); }

/// Which kernel stands behind which matmul, and the graph in which they are one.
class Epilogues {
 public:
  Epilogues(const Graph& graph, const Target& target)
      : graph_(graph),
        target_(target),
        partner_(graph.nodes().size(), -1),
        readers_(static_cast<size_t>(graph.value_count())),
        is_output_(static_cast<size_t>(graph.value_count()), false) {
    for (size_t i = 0; i < graph.nodes().size(); ++i)
      for (Value operand : graph.nodes()[i].inputs)
        readers_[place(operand)].push_back(static_cast<int>(i));
    for (const Graph::Output& output : graph.outputs()) is_output_[place(output.value)] = true;
    for (size_t i = 0; i < graph.nodes().size(); ++i)
      if (may_have_epilogue(graph, graph.nodes()[i], target)) choose(static_cast<int>(i));
  }

  Graph run() {
    Rewriter rewriter(graph_);
    done_.assign(graph_.nodes().size(), false);
    for (size_t i = 0; i < graph_.nodes().size(); ++i)
      if (!is_within(static_cast<int>(i))) write(rewriter, static_cast<int>(i));
    return rewriter.finish();
  }

 private:
  const Node& node(int index) const { return graph_.nodes()[at(index)]; }
  // A kernel comes after its matmul in the given order.
  bool is_product(int index) const { return partner_[at(index)] > index; }
  // Does only the kernel behind a matmul read the node: the matmul, or what renames it?
  bool is_within(int index) const {
    const int maker = graph_.producer(renamed_from(graph_, node(index).outputs[0]));
    return maker >= 0 && is_product(maker) && vanishes(node(index).outputs[0], partner_[at(maker)]);
  }

  void choose(int matmul) {
    std::vector<int> readers;
    collect_readers(node(matmul).outputs[0], readers);
    std::sort(readers.begin(), readers.end());
    if (readers.empty()) return;
    if (target_.recompute != Recompute::off && !vanishes(node(matmul).outputs[0], readers.front()))
      return;
    for (int reader : readers) {
      if (partner_[at(reader)] >= 0 || !fits_behind(graph_, node(matmul), node(reader)) ||
          waits(matmul, reader))
        continue;
      partner_[at(matmul)] = reader;
      partner_[at(reader)] = matmul;
      return;
    }
  }

  // Through what only renames it.
  void collect_readers(Value value, std::vector<int>& found) const {
    for (int reader : readers_[place(value)]) {
      if (node(reader).op->is(Tag::identity))
        collect_readers(node(reader).outputs[0], found);
      else
        found.push_back(reader);
    }
  }

  bool vanishes(Value value, int kernel) const {
    if (is_output_[place(value)]) return false;
    return std::all_of(
        readers_[place(value)].begin(), readers_[place(value)].end(), [&](int reader) {
          return node(reader).op->is(Tag::identity) ? vanishes(node(reader).outputs[0], kernel)
                                                    : reader == kernel;
        });
  }

  // Would the two as one have to wait for themselves, because something else reads the matmul, or the
  // kernel, and is read by either?
  bool waits(int matmul, int kernel) const {
    std::vector<int> waiting;
    std::vector<bool> seen(graph_.nodes().size(), false);
    const auto visit = [&](Value operand) {
      const int maker = graph_.producer(operand);
      if (maker >= 0 && !seen[at(maker)]) {
        seen[at(maker)] = true;
        waiting.push_back(maker);
      }
    };
    const auto visit_operands = [&](int index) {
      for (Value operand : node(index).inputs) visit(operand);
    };
    visit_operands(matmul);
    for (Value operand : node(kernel).inputs)
      if (renamed_from(graph_, operand) != node(matmul).outputs[0]) visit(operand);
    while (!waiting.empty()) {
      const int next = waiting.back();
      waiting.pop_back();
      if (next == matmul || next == kernel) return true;
      visit_operands(next);
      if (const int partner = partner_[at(next)]; partner >= 0) {
        seen[at(partner)] = true;
        if (partner == matmul || partner == kernel) return true;
        visit_operands(partner);
      }
    }
    return false;
  }

  // The node, and whatever it waits for that has not been written yet.
  void write(Rewriter& rewriter, int index) {
    if (is_product(index)) index = partner_[at(index)];
    if (done_[at(index)]) return;
    done_[at(index)] = true;
    const int matmul = partner_[at(index)];
    if (matmul >= 0) write_makers(rewriter, matmul, -1);
    write_makers(rewriter, index, matmul);
    if (matmul >= 0)
      write_both(rewriter, node(matmul), node(index));
    else
      write_one(rewriter, node(index));
  }

  // `within`: the matmul that is part of the node, or -1.
  void write_makers(Rewriter& rewriter, int index, int within) {
    for (Value operand : node(index).inputs) {
      const int maker = graph_.producer(operand);
      const bool inside = within >= 0 && renamed_from(graph_, operand) == node(within).outputs[0];
      if (maker >= 0 && !inside) write(rewriter, maker);
    }
  }

  // Not in a parallel loop: a launch by a thread group, of one worker mostly, costs next to nothing.
  void write_one(Rewriter& rewriter, const Node& node) {
    rewriter.copy(
        node,
        is_loop(node) && !LoopShape(node).parallel
            ? rewritten_body(node, [&](const Graph& body) { return fuse_epilogues(body, target_); })
            : node.body);
  }

  void write_both(Rewriter& rewriter, const Node& matmul, const Node& kernel) {
    GraphBuilder body("fused");
    std::vector<Value> operands;
    std::map<Value, Tensor> inner;
    const auto read = [&](Value value) {
      Tensor& known = inner[value];
      if (!known.valid()) {
        known = body.input(fmt::format("x{}", operands.size()), Role::local, graph_.type(value));
        operands.push_back(value);
      }
      return known;
    };
    std::vector<Tensor> multiplied;
    for (Value operand : matmul.inputs) multiplied.push_back(read(operand));
    const Value made = matmul.outputs[0];
    inner[made] = body.emit_like(matmul, multiplied)[0];
    std::vector<Tensor> inputs;
    for (Value operand : kernel.inputs) {
      const bool inside = renamed_from(graph_, operand) == made;
      inputs.push_back(inside ? renamed(body, inner[made], operand, made) : read(operand));
    }
    const Origin origin(body, kernel);
    const std::vector<Tensor> results =
        kernel.body ? inline_graph(body, *kernel.body, inputs) : body.emit_like(kernel, inputs);
    std::vector<Value> outputs;
    const auto put_out = [&](Value value, Tensor tensor) {
      body.output(fmt::format("y{}", outputs.size()), tensor);
      outputs.push_back(value);
    };
    for (size_t i = 0; i < results.size(); ++i) put_out(kernel.outputs[i], results[i]);
    if (!vanishes(made, kernel_of(matmul))) put_out(made, inner[made]);

    const Origin whole(rewriter.builder(), matmul);
    const std::vector<Tensor> both = fused(rewriter.builder(), rewriter.tensors(operands),
                                           std::make_shared<const Graph>(body.take()));
    for (size_t i = 0; i < outputs.size(); ++i) rewriter.map(outputs[i], both[i].value());
  }

  int kernel_of(const Node& matmul) const {
    return partner_[at(graph_.producer(matmul.outputs[0]))];
  }

  // `value`, which renames `made`, inside the body.
  Tensor renamed(GraphBuilder& body, Tensor matmul, Value value, Value made) const {
    if (value == made) return matmul;
    const Node& maker = *graph_.producer_node(value);
    const Tensor from = renamed(body, matmul, maker.inputs[0], made);
    return body.emit_like(maker, std::span(&from, 1))[0];
  }

  const Graph& graph_;
  const Target& target_;
  std::vector<int> partner_;               // per node: the kernel of a matmul, its matmul, or -1
  std::vector<std::vector<int>> readers_;  // per value: nodes
  std::vector<bool> is_output_;            // per value: of the graph
  std::vector<bool> done_;                 // per node
};

}  // namespace

Graph fuse_epilogues(const Graph& graph, const Target& target) {
  if (target.epilogues.operand_dtypes.empty()) return graph;
  return Epilogues(graph, target).run();
}

}  // namespace fullbore
