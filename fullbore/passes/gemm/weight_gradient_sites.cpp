#include "fullbore/passes/gemm/weight_gradient_sites.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "fullbore/ir/op_def.h"
#include "fullbore/ops/compose.h"
#include "fullbore/ops/op_handles.h"
#include "fullbore/passes/gemm/matmul_sums.h"
#include "fullbore/passes/support/rewriter.h"

namespace fullbore {
namespace {

// A copied row is read and written once more, as is a sum; beyond about this share matmuls of all rows
// gain nothing over matmuls of some (bench/batch_weight_gradients.cpp).
constexpr int64_t kRowsPerSum = 2;

// Arithmetic that takes as long as moving a byte does (memory_offers.cpp).
constexpr double kFlopsPerByte = 8;

/// Matmuls that become one, which stands where the last of them stood.
struct Group {
  enum class Way : uint8_t { add_a, add_b, rows };
  Way way = Way::rows;
  std::vector<SummedMatmul> matmuls;  // in the order of the graph
};

// Do both go the same way to their sum?
bool same_steps(const SummedMatmul& a, const SummedMatmul& b) {
  return std::equal(a.steps.begin(), a.steps.end(), b.steps.begin(), b.steps.end(),
                    [](const Node* x, const Node* y) {
                      return x->op == y->op && x->attributes == y->attributes;
                    });
}

// Is it worth adding up `operand`s first, of which each would be multiplied by the same other operand, and
// multiplying once?
bool gains_by_adding(const Graph& graph, const SummedMatmul& matmul, Value operand) {
  const TensorType& result = graph.type(matmul.matmul->outputs[0]);
  const auto bytes = [](const TensorType& type) {
    return static_cast<double>(TensorType{compute_dtype(type.dtype), type.shape}.bytes());
  };
  const double arithmetic = 2 * static_cast<double>(result.elements()) *
                            static_cast<double>(contracted_extent(graph, matmul));
  return arithmetic + kFlopsPerByte * 2 * bytes(result) >
         kFlopsPerByte * 2 * bytes(graph.type(operand));
}

// What stands for an operand in a sum of operands: it, or what it was before it was rounded.
Value before_rounding(const Graph& graph, Value operand) {
  const Node* node = graph.producer_node(operand);
  const DType dtype = graph.type(operand).dtype;
  const bool rounded = node && node->op == op::cast && is_low_precision(dtype) &&
                       graph.type(node->inputs[0]).dtype == compute_dtype(dtype);
  return rounded ? node->inputs[0] : operand;
}

class SiteGathering {
 public:
  explicit SiteGathering(const Graph& graph) : graph_(graph), rewriter_(graph) {
    const std::vector<int> uses = graph.use_counts();
    std::set<const Node*> seen;
    for (auto node = graph.nodes().rbegin(); node != graph.nodes().rend(); ++node) {
      if (node->outputs.empty() || seen.contains(&*node)) continue;
      const ProductSum sum = product_sum(graph, uses, node->outputs[0]);
      seen.insert(sum.additions.begin(), sum.additions.end());
      if (sum.matmuls.size() > 1) gather(sum);
    }
  }

  bool found() const { return !groups_.empty(); }

  Graph run() {
    for (const Node& node : graph_.nodes()) {
      const auto member = member_.find(&node);
      const auto sum = sums_.find(&node);
      if (member != member_.end()) {
        if (groups_[member->second].matmuls.back().matmul == &node)
          made_[member->second] = emit(groups_[member->second]);
      } else if (sum != sums_.end()) {
        rewriter_.map(node.outputs[0], emit(node, sum->second).value());
      } else if (!vanishing_.contains(&node)) {
        rewriter_.copy(node);
      }
    }
    return rewriter_.finish();
  }

 private:
  /// What is left of a sum: values of the graph, and groups.
  struct Rest {
    std::vector<Value> terms;
    std::vector<size_t> groups;
  };

  bool same_operand(const SummedMatmul& x, const SummedMatmul& y, size_t which) const {
    const size_t other = 1 - which;
    return x.matmul->inputs[which] == y.matmul->inputs[which] &&
           x.matmul->attributes == y.matmul->attributes &&
           graph_.type(x.matmul->inputs[other]) == graph_.type(y.matmul->inputs[other]) &&
           same_steps(x, y);
  }

  // Those of `matmuls` that share operand `which` with the first of them.
  Group sharing(const std::vector<SummedMatmul>& matmuls, size_t which) const {
    Group group{which == 0 ? Group::Way::add_b : Group::Way::add_a, {}};
    const SummedMatmul& first = matmuls.front();
    if (gains_by_adding(graph_, first, first.matmul->inputs[1 - which]))
      std::copy_if(matmuls.begin(), matmuls.end(), std::back_inserter(group.matmuls),
                   [&](const SummedMatmul& each) { return same_operand(first, each, which); });
    return group;
  }

  int64_t operand_bytes(const SummedMatmul& matmul) const {
    return graph_.type(matmul.a()).bytes() + graph_.type(matmul.b()).bytes();
  }
  int64_t sum_bytes(const SummedMatmul& matmul) const {
    const TensorType& type = graph_.type(matmul.matmul->outputs[0]);
    return TensorType{compute_dtype(type.dtype), type.shape}.bytes();
  }

  bool has_few_rows(const SummedMatmul& matmul) const {
    return contracts_rows(graph_, matmul) &&
           kRowsPerSum * operand_bytes(matmul) <= sum_bytes(matmul);
  }
  // Those of `matmuls`, which have few rows, that become one with the first of them.
  Group contracting_rows(const std::vector<SummedMatmul>& matmuls) const {
    Group group{Group::Way::rows, {}};
    const SummedMatmul& first = matmuls.front();
    const auto type = [&](Value value) { return graph_.type(value); };
    std::copy_if(matmuls.begin(), matmuls.end(), std::back_inserter(group.matmuls),
                 [&](const SummedMatmul& each) {
                   return type(each.matmul->outputs[0]) == type(first.matmul->outputs[0]) &&
                          type(each.a()).dtype == type(first.a()).dtype &&
                          each.tf32() == first.tf32() && same_steps(first, each);
                 });
    return group;
  }

  void gather(const ProductSum& sum) {
    std::vector<SummedMatmul> matmuls = sum.matmuls;
    const auto position = [&](const SummedMatmul& each) {
      return graph_.producer(each.matmul->outputs[0]);
    };
    std::sort(matmuls.begin(), matmuls.end(),
              [&](const auto& x, const auto& y) { return position(x) < position(y); });
    Rest rest{sum.others, {}};
    for (const size_t which : {0, 1}) {
      std::map<Value, std::vector<SummedMatmul>> buckets;
      for (const SummedMatmul& each : matmuls)
        if (!member_.contains(each.matmul)) buckets[each.matmul->inputs[which]].push_back(each);
      for (auto& [operand, bucket] : buckets)
        take(std::move(bucket), rest, [&](const auto& left) { return sharing(left, which); });
    }
    std::vector<SummedMatmul> few;
    for (const SummedMatmul& each : matmuls)
      if (!member_.contains(each.matmul) && has_few_rows(each)) few.push_back(each);
    take(std::move(few), rest, [&](const auto& left) { return contracting_rows(left); });
    if (rest.groups.empty()) return;
    for (const SummedMatmul& each : matmuls)
      if (!member_.contains(each.matmul))
        rest.terms.push_back((each.steps.empty() ? each.matmul : each.steps.back())->outputs[0]);
    vanishing_.insert(sum.additions.begin(), sum.additions.end());
    sums_[graph_.producer_node(sum.root)] = std::move(rest);
  }

  // Makes groups of what is left, each with the first, as long as they have two members.
  template <class MakeGroup>
  void take(std::vector<SummedMatmul> left, Rest& rest, const MakeGroup& make_group) {
    while (left.size() > 1) {
      Group group = make_group(left);
      if (group.matmuls.size() < 2) {
        left.erase(left.begin());
        continue;
      }
      for (const SummedMatmul& each : group.matmuls) {
        member_[each.matmul] = groups_.size();
        vanishing_.insert(each.steps.begin(), each.steps.end());
      }
      std::erase_if(left, [&](const auto& each) { return member_.contains(each.matmul); });
      rest.groups.push_back(groups_.size());
      groups_.push_back(std::move(group));
    }
  }

  Tensor emit(const Group& group) {
    const SummedMatmul& first = group.matmuls.front();
    const Origin origin(rewriter_.builder(), *first.matmul);
    if (group.way == Group::Way::rows) {
      const Tensor a = rows_of(group, 0);
      const Tensor b = rows_of(group, 1);
      return emit_matmul(first, a, b, true, false);
    }
    const bool adds_a = group.way == Group::Way::add_a;
    const Tensor a = adds_a ? sum_of(group, 0) : rewriter_.tensor(first.a());
    const Tensor b = adds_a ? rewriter_.tensor(first.b()) : sum_of(group, 1);
    return emit_matmul(first, a, b, first.transpose_a(), first.transpose_b());
  }

  Tensor sum_of(const Group& group, size_t which) {
    Tensor sum;
    for (const SummedMatmul& each : group.matmuls) {
      const Value addend = before_rounding(graph_, each.matmul->inputs[which]);
      const Tensor wide = widened(rewriter_.tensor(addend));
      sum = sum.valid() ? add(sum, wide) : wide;
    }
    return as_dtype(sum, graph_.type(group.matmuls.front().matmul->inputs[which]).dtype);
  }

  Tensor rows_of(const Group& group, size_t which) {
    std::vector<Tensor> parts;
    for (const SummedMatmul& each : group.matmuls) {
      const Tensor part = rewriter_.tensor(each.matmul->inputs[which]);
      const int64_t k = contracted_extent(graph_, each);
      const Shape rows = {k, k == 1 ? part.type().elements() : part.dim(1)};
      parts.push_back(part.shape() == rows ? part : reshape(part, rows));
    }
    return concat(parts, 0);
  }

  Tensor emit(const Node& root, const Rest& rest) {
    const Origin origin(rewriter_.builder(), root);
    std::vector<Tensor> terms = rewriter_.tensors(rest.terms);
    for (size_t group : rest.groups) terms.push_back(made_.at(group));
    Tensor sum = terms.front();
    for (size_t i = 1; i < terms.size(); ++i) sum = add(sum, terms[i]);
    return sum;
  }

  const Graph& graph_;
  Rewriter rewriter_;
  std::vector<Group> groups_;
  std::map<const Node*, size_t> member_;  // matmuls, by the group that they are in
  std::map<const Node*, Rest> sums_;      // by the last addition
  std::set<const Node*> vanishing_;
  std::map<size_t, Tensor> made_;  // per group
};

}  // namespace

std::optional<Graph> gather_sites(const Graph& graph) {
  std::optional<Graph> result;
  // A matmul made of several may be one of those that go with others.
  while (true) {
    SiteGathering gathering(result ? *result : graph);
    if (!gathering.found()) return result;
    result = gathering.run();
  }
}

}  // namespace fullbore
