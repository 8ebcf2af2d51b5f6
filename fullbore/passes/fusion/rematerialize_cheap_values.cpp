#include "fullbore/passes/fusion/rematerialize_cheap_values.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "fullbore/ir/fused_matmul.h"
#include "fullbore/ir/loop.h"
#include "fullbore/ir/number_everywhere.h"
#include "fullbore/ir/op_def.h"
#include "fullbore/ops/counted_rows.h"
#include "fullbore/ops/op_handles.h"
#include "fullbore/ops/ops.h"
#include "fullbore/passes/canonicalize/dead_code_elimination.h"
#include "fullbore/passes/fusion/epilogue_rules.h"
#include "fullbore/passes/fusion/fused_bodies.h"
#include "fullbore/passes/fusion/fusion_groups.h"
#include "fullbore/passes/support/rewriter.h"

namespace fullbore {
namespace {

// What may be read instead of a value: as much, and a few numbers of rows or columns.
constexpr double kMostBytes = 1.125;

// Values that one kernel rematerializes, and that it reads: both are limits of its size, not of what pays.
constexpr size_t kMostRematerialized = 24, kMostValues = 48;

// Exponentials and quotients, of which gates are made, take no longer than writing and reading as many bytes; error functions
// do. In low precision memory has rounded what they were told, and what they make again would be another value.
bool is_cheap(const Node& node, bool low_precision) {
  if (!node.op->is(Tag::elementwise) || node.outputs.size() != 1) return false;
  switch (node.op->scalar) {
    case ScalarOp::exp:
    case ScalarOp::div: return !low_precision;
    case ScalarOp::neg:
    case ScalarOp::abs:
    case ScalarOp::cast:
    case ScalarOp::add:
    case ScalarOp::sub:
    case ScalarOp::mul:
    case ScalarOp::maximum:
    case ScalarOp::minimum:
    case ScalarOp::equal:
    case ScalarOp::not_equal:
    case ScalarOp::less:
    case ScalarOp::less_equal:
    case ScalarOp::logical_not:
    case ScalarOp::logical_and:
    case ScalarOp::logical_or:
    case ScalarOp::select: return true;
    default: return false;
  }
}

bool is_sum(const Node& node) {
  return node.op->scalar == ScalarOp::add || node.op->scalar == ScalarOp::sub;
}

/// Which values readers make by themselves.
class CheapValues {
 public:
  CheapValues(const Graph& graph, const FusionGroups& groups, const Target& target);

  /// Do kernels that need the value make it by themselves? Also if but one kernel does, and others may have to on the
  /// way to what they rematerialize.
  bool contains(Value value) const;
  bool empty() const { return rematerialized_.empty(); }

 private:
  /// What a group reads from memory, and what it takes to make rematerialized values there.
  struct Reading {
    std::set<Value> values;  ///< before reshapes
    std::set<Value> rematerialized;
    bool rounded = false;  ///< are sums rematerialized of values that memory keeps rounded?
  };

  void consider(const Node& node, int group);
  /// Nothing if a group cannot make what it then has to.
  std::optional<Reading> reading(int group) const;
  bool collect(Value operand, int group, bool for_sum, FusionSpace& space, Reading& reading) const;
  double bytes(Value value) const;
  double new_bytes(const Reading& before, const Reading& after) const;

  const Graph& graph_;
  const FusionGroups& groups_;
  bool low_precision_;
  std::set<Value> rematerialized_;
};

CheapValues::CheapValues(const Graph& graph, const FusionGroups& groups, const Target& target)
    : graph_(graph), groups_(groups), low_precision_(target.precision != DType::f32) {
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const int group = groups.group(static_cast<int>(i));
    if (groups.is_fused(group) && is_cheap(graph.nodes()[i], low_precision_))
      consider(graph.nodes()[i], group);
  }
}

bool CheapValues::contains(Value value) const {
  if (rematerialized_.contains(value)) return true;
  const int maker = graph_.producer(value);
  if (maker < 0 || !is_cheap(graph_.nodes()[static_cast<size_t>(maker)], low_precision_))
    return false;
  const int group = groups_.group(maker);
  return groups_.is_fused(group) && groups_.read_only_by(value, group);
}

// Operands come before what is made of them, so it is known of them whether they reach memory.
void CheapValues::consider(const Node& node, int group) {
  const Value value = node.outputs[0];
  std::optional<std::set<int>> readers = groups_.reading_groups(value);
  if (!readers || readers->empty() || *readers == std::set{group}) return;
  readers->erase(group);
  std::vector<Reading> before;
  for (int reader : *readers) {
    std::optional<Reading> now = reading(reader);
    if (!now) return;
    before.push_back(std::move(*now));
  }
  rematerialized_.insert(value);
  size_t i = 0;
  for (int reader : *readers) {
    const std::optional<Reading> after = reading(reader);
    if (!after || after->rounded || after->rematerialized.size() > kMostRematerialized ||
        after->values.size() > kMostValues ||
        new_bytes(before[i++], *after) > kMostBytes * bytes(value)) {
      rematerialized_.erase(value);
      return;
    }
  }
}

std::optional<CheapValues::Reading> CheapValues::reading(int group) const {
  Reading result;
  FusionSpace space = groups_.space(group);
  for (int member : groups_.members(group))
    for (Value operand : graph_.nodes()[static_cast<size_t>(member)].inputs)
      if (!groups_.made_within(operand, group) && !collect(operand, group, false, space, result))
        return std::nullopt;
  return result;
}

bool CheapValues::collect(Value operand, int group, bool for_sum, FusionSpace& space,
                          Reading& reading) const {
  if (number_everywhere(graph_, operand)) return true;
  const Node* maker = graph_.producer_node(operand);
  const auto operands = [&](bool of_sum) {
    return std::ranges::all_of(
        maker->inputs, [&](Value input) { return collect(input, group, of_sum, space, reading); });
  };
  if (maker && maker->op == op::iota) return true;
  if (maker && maker->op == op::broadcast_to) return operands(for_sum);
  if (groups_.made_within(operand, group)) return admit(space, graph_, operand);
  if (maker && maker->op->is(Tag::identity) &&
      comes_from_readers(
          graph_, [&](Value value) { return contains(value); }, operand))
    return admit(space, graph_, operand) && operands(for_sum);
  if (contains(operand)) {
    reading.rematerialized.insert(operand);
    return operands(for_sum || is_sum(*maker));
  }
  if (groups_.is_cut_out(operand, group)) return operands(for_sum);
  const Value value = renamed_from(graph_, operand);
  const int node = graph_.producer(value);
  const bool of_group = node >= 0 && groups_.is_fused(groups_.group(node));
  if (of_group && groups_.read_only_by(value, groups_.group(node))) return false;
  if (for_sum && low_precision_ && of_group && graph_.type(value).dtype == DType::f32)
    reading.rounded = true;
  reading.values.insert(value);
  return true;
}

// As memory will keep it.
double CheapValues::bytes(Value value) const {
  const TensorType& type = graph_.type(value);
  const bool narrowed = low_precision_ && type.dtype == DType::f32;
  return static_cast<double>(type.bytes()) / (narrowed ? 2 : 1);
}

double CheapValues::new_bytes(const Reading& before, const Reading& after) const {
  double sum = 0;
  for (Value value : after.values)
    if (!before.values.contains(value)) sum += bytes(value);
  return sum;
}

// As fuse writes them: not a matmul's epilogue, nor one that makes values already which are cut out or padded then.
bool is_kernel(const Node& node) {
  if (node.op != op::fused || fused_matmul(node)) return false;
  std::vector<int> members;
  for (size_t i = 0; i < node.body->nodes().size(); ++i)
    if (fusion_space(*node.body, node.body->nodes()[i])) members.push_back(static_cast<int>(i));
  return !members.empty() && common_space(*node.body, members);
}

/// The graph without `fused` nodes, as it was before there were any.
class Unfused {
 public:
  explicit Unfused(const Graph& graph) : rewriter_(graph) {
    for (size_t i = 0; i < graph.nodes().size(); ++i) {
      const Node& node = graph.nodes()[i];
      kernel_ = static_cast<int>(i);
      is_kernel(node) ? write_body(node) : write(node);
    }
    graph_ = rewriter_.finish();
  }

  const Graph& graph() const { return graph_; }
  /// Per node: a number of the kernel that it was in, or -1 if it was in none.
  const std::vector<int>& kernels() const { return kernels_; }

 private:
  void write(const Node& node) {
    rewriter_.copy(node);
    number();
  }

  void write_body(const Node& node) {
    const Graph& body = *node.body;
    std::vector<Tensor> inner(static_cast<size_t>(body.value_count()));
    const auto at = [&](Value value) -> Tensor& { return inner[static_cast<size_t>(value.id)]; };
    for (size_t i = 0; i < node.inputs.size(); ++i)
      at(body.inputs()[i].value) = rewriter_.tensor(node.inputs[i]);
    for (const Node& each : body.nodes()) {
      std::vector<Tensor> operands;
      for (const Value input : each.inputs) operands.push_back(at(input));
      at(each.outputs[0]) =
          fusion_space(body, each) ? made(each, operands) : made_once(each, operands);
    }
    for (size_t i = 0; i < node.outputs.size(); ++i)
      rewriter_.map(node.outputs[i], at(body.outputs()[i].value).value());
  }

  Tensor made(const Node& node, const std::vector<Tensor>& operands) {
    const Tensor result = rewriter_.builder().emit_like(node, operands)[0];
    number();
    return result;
  }

  // What moves values is in every body that reads them so.
  Tensor made_once(const Node& node, const std::vector<Tensor>& operands) {
    std::vector<Value> inputs;
    for (const Tensor& operand : operands) inputs.push_back(operand.value());
    Tensor& known = moved_[{node.op, inputs, node.attributes.text()}];
    if (!known.valid()) known = made(node, operands);
    return known;
  }

  void number() {
    const Graph& now = rewriter_.to();
    while (kernels_.size() < now.nodes().size())
      kernels_.push_back(fusion_space(now, now.nodes()[kernels_.size()]) ? kernel_ : -1);
  }

  Rewriter rewriter_;
  Graph graph_;
  int kernel_ = 0;
  std::vector<int> kernels_;
  /// By op, operands and attributes, as text: 0 is not -0.
  std::map<std::tuple<const OpDef*, std::vector<Value>, std::string>, Tensor> moved_;
};

bool has_kernel(const Graph& graph) {
  return std::ranges::any_of(graph.nodes(), [](const Node& node) {
    return is_kernel(node) || (is_loop(node) && has_kernel(*node.body));
  });
}

Graph rematerialized(const Graph& graph, const Target& target) {
  const Unfused whole(graph);
  const FusionGroups groups(whole.graph(), whole.kernels());
  const CheapValues values(whole.graph(), groups, target);
  const auto rewrite_loop_body = [&](const Graph& body) { return rematerialized(body, target); };
  if (!values.empty())
    return write_groups(
        whole.graph(), groups, [&](Value value) { return values.contains(value); },
        rewrite_loop_body);
  Rewriter rewriter(graph);
  for (const Node& node : graph.nodes())
    rewriter.copy(node, is_loop(node) ? rewritten_body(node, rewrite_loop_body) : node.body);
  return rewriter.finish();
}

// A loop takes over the bytes of what it begins with, unless somebody else reads them too: then they are copied.
constexpr int64_t kFewestBytes = 4096;

// Numbers everywhere, or rows of zeros.
bool is_beginning(const Graph& graph, Value initial) {
  const Node* const maker = graph.producer_node(initial);
  return maker && ((maker->op == op::broadcast_to && number_everywhere(graph, initial)) ||
                   makes_zero_rows(graph, *maker));
}

/// Numbers everywhere, zeros above all, that several loops begin with, or one in several places, are made for each.
Graph with_own_beginnings(const Graph& graph) {
  std::vector<int> readers(static_cast<size_t>(graph.value_count()), 0);
  const auto of = [&](Value value) -> int& { return readers[static_cast<size_t>(value.id)]; };
  for (const Node& node : graph.nodes())
    for (const Value operand : node.inputs) ++of(operand);
  for (const Graph::Output& output : graph.outputs()) ++of(output.value);
  Rewriter rewriter(graph);
  for (const Node& node : graph.nodes()) {
    if (!is_loop(node)) {
      rewriter.copy(node);
      continue;
    }
    const LoopShape shape(node);
    std::vector<Tensor> operands = rewriter.tensors(node.inputs);
    for (int c = 0; c < shape.carried; ++c) {
      const auto place = static_cast<size_t>(shape.first_carried() + c);
      const Value initial = node.inputs[place];
      if (of(initial) == 1 || graph.type(initial).bytes() < kFewestBytes ||
          !is_beginning(graph, initial))
        continue;
      --of(initial);  // who comes last has what is there
      const Node& maker = *graph.producer_node(initial);
      operands[place] = rewriter.builder().emit_like(maker, rewriter.tensors(maker.inputs))[0];
    }
    Node changed = node;
    changed.body = rewritten_body(node, with_own_beginnings);
    const std::vector<Tensor> results = rewriter.builder().emit_like(changed, operands);
    for (size_t i = 0; i < results.size(); ++i) rewriter.map(node.outputs[i], results[i].value());
  }
  return rewriter.finish();
}

}  // namespace

Graph rematerialize_cheap_values(const Graph& graph, const Target& target) {
  if (!has_kernel(graph)) return graph;
  // A reader that nobody reads is none, and goes when kernels are written: a second pass would find more to do.
  return with_own_beginnings(rematerialized(dead_code_elimination(graph, target), target));
}

}  // namespace fullbore
