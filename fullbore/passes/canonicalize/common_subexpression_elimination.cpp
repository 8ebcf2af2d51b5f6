#include "fullbore/passes/canonicalize/common_subexpression_elimination.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>

#include "fullbore/ir/fp32_scope.h"
#include "fullbore/ir/loop.h"
#include "fullbore/ir/op_def.h"
#include "fullbore/ir/print.h"
#include "fullbore/passes/loops/merge_loops.h"
#include "fullbore/passes/support/rewriter.h"

namespace fullbore {
namespace {

/// A node of the result, before it is written. Slots number the distinct values.
struct Entry {
  LoopCall call;  ///< the inputs are slots
  std::vector<int> outputs = {};
};

class Merging {
 public:
  explicit Merging(const Graph& graph)
      : graph_(graph), slots_(static_cast<size_t>(graph.value_count())) {}

  Graph run() {
    for (const Graph::Input& input : graph_.inputs()) slot(input.value) = new_slot(-1);
    for (const Node& node : graph_.nodes()) add(node);
    return write();
  }

 private:
  int& slot(Value value) { return slots_[static_cast<size_t>(value.id)]; }
  int new_slot(int entry) {
    made_by_.push_back(entry);
    return static_cast<int>(made_by_.size()) - 1;
  }

  void add(const Node& node) {
    Entry entry{{node, {}}};
    for (Value input : node.inputs) entry.call.inputs.push_back(slot(input));
    if (node.op->is(Tag::commutative))
      std::sort(entry.call.inputs.begin(), entry.call.inputs.end());
    // Per result of the node, the result of the entry that it is.
    std::vector<int> places(node.outputs.size());
    std::iota(places.begin(), places.end(), 0);
    if (is_loop(node))
      places = merge_within(entry.call);
    else
      entry.call.node.body =
          rewritten_body(node, [](const Graph& body) { return Merging(body).run(); });

    std::vector<size_t>& alike = entries_by_key_[key(entry.call)];
    for (size_t candidate : alike)
      if (!is_loop(node) || merge_into(candidate, entry.call, places)) {
        // What an island of f32 makes is of it, whoever else makes it too.
        if (is_fp32_scope(node.scope)) entries_[candidate].call.node.scope = node.scope;
        return bind(node, candidate, places);
      }
    alike.push_back(entries_.size());
    const size_t results = is_loop(node) ? entry.call.results() : node.outputs.size();
    for (size_t i = 0; i < results; ++i)
      entry.outputs.push_back(new_slot(static_cast<int>(entries_.size())));
    entries_.push_back(std::move(entry));
    bind(node, entries_.size() - 1, places);
  }

  void bind(const Node& node, size_t entry, const std::vector<int>& places) {
    for (size_t i = 0; i < node.outputs.size(); ++i)
      slot(node.outputs[i]) = entries_[entry].outputs[static_cast<size_t>(places[i])];
  }

  // Equal keys: equal nodes; of loops, equal in all but what they capture and compute.
  static std::string key(const LoopCall& call) {
    const Node& node = call.node;
    auto end = call.inputs.end();
    std::string body;
    if (is_loop(node))
      end = call.inputs.begin() +
            LoopShape(node.attributes, static_cast<int>(call.inputs.size()), *node.body)
                .first_captured();
    else if (node.body)
      body = fmt::format("{:016x}", graph_hash(*node.body));
    return fmt::format("{} {} ({}) {}", node.op->name, node.attributes.text(),
                       fmt::join(call.inputs.begin(), end, ","), body);
  }

  // Puts a loop into an earlier one, if they make the same iterations; `places` then tells where its
  // results are among those of the earlier entry.
  bool merge_into(size_t candidate, const LoopCall& call, std::vector<int>& places) {
    Entry& earlier = entries_[candidate];
    std::optional<MergedLoops> merged = merge_loops(earlier.call, call, [&](int value) {
      return made_by_[static_cast<size_t>(value)] < static_cast<int>(candidate);
    });
    if (!merged) return false;
    std::vector<int> outputs(merged->loop.results(), -1);
    for (size_t i = 0; i < earlier.outputs.size(); ++i)
      outputs[static_cast<size_t>(merged->first[i])] = earlier.outputs[i];
    for (int& output : outputs)
      if (output < 0) output = new_slot(static_cast<int>(candidate));
    earlier.outputs = std::move(outputs);
    earlier.call = std::move(merged->loop);
    for (int& place : places) place = merged->second[static_cast<size_t>(place)];
    return true;
  }

  Graph write() {
    GraphBuilder builder(graph_.name());
    std::vector<Tensor> tensors(made_by_.size());
    for (const Graph::Input& input : graph_.inputs())
      tensors[static_cast<size_t>(slot(input.value))] =
          builder.input_like(input, graph_.type(input.value));
    for (const Entry& entry : entries_) {
      std::vector<Tensor> operands;
      for (int input : entry.call.inputs) operands.push_back(tensors[static_cast<size_t>(input)]);
      const std::vector<Tensor> results = builder.emit_like(entry.call.node, operands);
      for (size_t i = 0; i < results.size(); ++i)
        tensors[static_cast<size_t>(entry.outputs[i])] = results[i];
    }
    for (const Graph::Output& output : graph_.outputs())
      builder.output(output.name, tensors[static_cast<size_t>(slot(output.value))], output.updates);
    return builder.take();
  }

  const Graph& graph_;
  std::vector<int> slots_;    // per value of the graph
  std::vector<int> made_by_;  // per slot: entry, or -1 for an input of the graph
  std::vector<Entry> entries_;
  std::map<std::string, std::vector<size_t>> entries_by_key_;
};

}  // namespace

Graph common_subexpression_elimination(const Graph& graph, const Target&) {
  return Merging(graph).run();
}

}  // namespace fullbore
