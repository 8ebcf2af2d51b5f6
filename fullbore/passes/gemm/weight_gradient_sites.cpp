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

// A copied row is read and written once more, as is a sum; beyond about this share products of all rows
// gain nothing over products of some (bench/batch_weight_gradients.cpp).
constexpr int64_t kRowsPerSum = 2;

// Arithmetic that takes as long as moving a byte does (memory_offers.cpp).
constexpr double kFlopsPerByte = 8;

/// Products that become one, which stands where the last of them stood.
struct Group {
  enum class Way : uint8_t { add_a, add_b, rows };
  Way way = Way::rows;
  std::vector<SummedProduct> products;  // in the order of the graph
};

// Do both go the same way to their sum?
bool same_steps(const SummedProduct& a, const SummedProduct& b) {
  return std::equal(a.steps.begin(), a.steps.end(), b.steps.begin(), b.steps.end(),
                    [](const Node* x, const Node* y) {
                      return x->op == y->op && x->attributes == y->attributes;
                    });
}

// Is it worth adding up `operand`s first, of which each would be multiplied by the same other operand, and
// multiplying once?
bool gains_by_adding(const Graph& graph, const SummedProduct& product, Value operand) {
  const TensorType& result = graph.type(product.product->outputs[0]);
  const auto bytes = [](const TensorType& type) {
    return static_cast<double>(TensorType{compute_dtype(type.dtype), type.shape}.bytes());
  };
  const double arithmetic = 2 * static_cast<double>(result.elements()) *
                            static_cast<double>(contracted_extent(graph, product));
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
      if (sum.products.size() > 1) gather(sum);
    }
  }

  bool found() const { return !groups_.empty(); }

  Graph run() {
    for (const Node& node : graph_.nodes()) {
      const auto member = member_.find(&node);
      const auto sum = sums_.find(&node);
      if (member != member_.end()) {
        if (groups_[member->second].products.back().product == &node)
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

  bool same_operand(const SummedProduct& x, const SummedProduct& y, size_t which) const {
    const size_t other = 1 - which;
    return x.product->inputs[which] == y.product->inputs[which] &&
           x.product->attributes == y.product->attributes &&
           graph_.type(x.product->inputs[other]) == graph_.type(y.product->inputs[other]) &&
           same_steps(x, y);
  }

  // Those of `products` that share operand `which` with the first of them.
  Group sharing(const std::vector<SummedProduct>& products, size_t which) const {
    Group group{which == 0 ? Group::Way::add_b : Group::Way::add_a, {}};
    const SummedProduct& first = products.front();
    if (gains_by_adding(graph_, first, first.product->inputs[1 - which]))
      std::copy_if(products.begin(), products.end(), std::back_inserter(group.products),
                   [&](const SummedProduct& each) { return same_operand(first, each, which); });
    return group;
  }

  int64_t operand_bytes(const SummedProduct& product) const {
    return graph_.type(product.a()).bytes() + graph_.type(product.b()).bytes();
  }
  int64_t sum_bytes(const SummedProduct& product) const {
    const TensorType& type = graph_.type(product.product->outputs[0]);
    return TensorType{compute_dtype(type.dtype), type.shape}.bytes();
  }

  bool has_few_rows(const SummedProduct& product) const {
    return contracts_rows(graph_, product) &&
           kRowsPerSum * operand_bytes(product) <= sum_bytes(product);
  }
  // Those of `products`, which have few rows, that become one with the first of them.
  Group contracting_rows(const std::vector<SummedProduct>& products) const {
    Group group{Group::Way::rows, {}};
    const SummedProduct& first = products.front();
    const auto type = [&](Value value) { return graph_.type(value); };
    std::copy_if(products.begin(), products.end(), std::back_inserter(group.products),
                 [&](const SummedProduct& each) {
                   return type(each.product->outputs[0]) == type(first.product->outputs[0]) &&
                          type(each.a()).dtype == type(first.a()).dtype && same_steps(first, each);
                 });
    return group;
  }

  void gather(const ProductSum& sum) {
    std::vector<SummedProduct> products = sum.products;
    const auto position = [&](const SummedProduct& each) {
      return graph_.producer(each.product->outputs[0]);
    };
    std::sort(products.begin(), products.end(),
              [&](const auto& x, const auto& y) { return position(x) < position(y); });
    Rest rest{sum.others, {}};
    for (const size_t which : {0, 1}) {
      std::map<Value, std::vector<SummedProduct>> buckets;
      for (const SummedProduct& each : products)
        if (!member_.contains(each.product)) buckets[each.product->inputs[which]].push_back(each);
      for (auto& [operand, bucket] : buckets)
        take(std::move(bucket), rest, [&](const auto& left) { return sharing(left, which); });
    }
    std::vector<SummedProduct> few;
    for (const SummedProduct& each : products)
      if (!member_.contains(each.product) && has_few_rows(each)) few.push_back(each);
    take(std::move(few), rest, [&](const auto& left) { return contracting_rows(left); });
    if (rest.groups.empty()) return;
    for (const SummedProduct& each : products)
      if (!member_.contains(each.product))
        rest.terms.push_back((each.steps.empty() ? each.product : each.steps.back())->outputs[0]);
    vanishing_.insert(sum.additions.begin(), sum.additions.end());
    sums_[graph_.producer_node(sum.root)] = std::move(rest);
  }

  // Makes groups of what is left, each with the first, as long as they have two members.
  template <class MakeGroup>
  void take(std::vector<SummedProduct> left, Rest& rest, const MakeGroup& make_group) {
    while (left.size() > 1) {
      Group group = make_group(left);
      if (group.products.size() < 2) {
        left.erase(left.begin());
        continue;
      }
      for (const SummedProduct& each : group.products) {
        member_[each.product] = groups_.size();
        vanishing_.insert(each.steps.begin(), each.steps.end());
      }
      std::erase_if(left, [&](const auto& each) { return member_.contains(each.product); });
      rest.groups.push_back(groups_.size());
      groups_.push_back(std::move(group));
    }
  }

  Tensor emit(const Group& group) {
    const SummedProduct& first = group.products.front();
    const Origin origin(rewriter_.builder(), *first.product);
    if (group.way == Group::Way::rows) {
      const Tensor a = rows_of(group, 0);
      const Tensor b = rows_of(group, 1);
      return emit_product(first, a, b, true, false);
    }
    const bool adds_a = group.way == Group::Way::add_a;
    const Tensor a = adds_a ? sum_of(group, 0) : rewriter_.tensor(first.a());
    const Tensor b = adds_a ? rewriter_.tensor(first.b()) : sum_of(group, 1);
    return emit_product(first, a, b, first.transpose_a(), first.transpose_b());
  }

  Tensor sum_of(const Group& group, size_t which) {
    Tensor sum;
    for (const SummedProduct& each : group.products) {
      const Value addend = before_rounding(graph_, each.product->inputs[which]);
      const Tensor wide = widened(rewriter_.tensor(addend));
      sum = sum.valid() ? add(sum, wide) : wide;
    }
    return as_dtype(sum, graph_.type(group.products.front().product->inputs[which]).dtype);
  }

  Tensor rows_of(const Group& group, size_t which) {
    std::vector<Tensor> parts;
    for (const SummedProduct& each : group.products) {
      const Tensor part = rewriter_.tensor(each.product->inputs[which]);
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
  std::map<const Node*, size_t> member_;  // products, by the group that they are in
  std::map<const Node*, Rest> sums_;      // by the last addition
  std::set<const Node*> vanishing_;
  std::map<size_t, Tensor> made_;  // per group
};

}  // namespace

std::optional<Graph> gather_sites(const Graph& graph) {
  std::optional<Graph> result;
  // A product made of several may be one of those that go with others.
  while (true) {
    SiteGathering gathering(result ? *result : graph);
    if (!gathering.found()) return result;
    result = gathering.run();
  }
}

}  // namespace fullbore
