#include "fullbore/passes/gather_sites.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "fullbore/ops/compose.h"
#include "fullbore/passes/product_sums.h"
#include "fullbore/passes/rewriter.h"

namespace fullbore {
namespace {

// A copied row is read and written once more, as is a sum; beyond about this share products of all rows
// gain nothing over products of some (bench/gather_products.cpp).
constexpr int64_t kRowsPerSum = 2;

/// Products that become one, which stands where the last of them stood.
struct Group {
  enum class Way : uint8_t { add_a, add_b, rows };
  Way way = Way::rows;
  std::vector<SummedProduct> products;  // in the order of the graph
};

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

  // The first of `products` with those that share its operand `which`.
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

  // The first with those whose rows may be copied behind its own, if that moves less than they do.
  Group contracting_rows(const std::vector<SummedProduct>& products) const {
    Group group{Group::Way::rows, {}};
    const SummedProduct& first = products.front();
    const TensorType& result = graph_.type(first.product->outputs[0]);
    for (const SummedProduct& each : products) {
      const bool like = contracts_rows(graph_, each) && same_steps(first, each) &&
                        graph_.type(each.product->outputs[0]) == result &&
                        graph_.type(each.a()).dtype == graph_.type(first.a()).dtype;
      if (!like || kRowsPerSum * operand_bytes(each) > sum_bytes(each)) continue;
      group.products.push_back(each);
    }
    if (!group.products.empty() && group.products.front().product != first.product)
      group.products.clear();
    return group;
  }

  void gather(const ProductSum& sum) {
    std::vector<SummedProduct> left = sum.products;
    const auto position = [&](const SummedProduct& each) {
      return graph_.producer(each.product->outputs[0]);
    };
    std::sort(left.begin(), left.end(),
              [&](const auto& x, const auto& y) { return position(x) < position(y); });
    Rest rest{sum.others, {}};
    while (!left.empty()) {
      Group best = sharing(left, 0);
      if (Group other = sharing(left, 1); other.products.size() > best.products.size())
        best = std::move(other);
      if (best.products.size() < 2) best = contracting_rows(left);
      if (best.products.size() < 2) {
        const SummedProduct& alone = left.front();
        rest.terms.push_back(
            (alone.steps.empty() ? alone.product : alone.steps.back())->outputs[0]);
        left.erase(left.begin());
        continue;
      }
      for (const SummedProduct& each : best.products) {
        std::erase_if(left, [&](const auto& other) { return other.product == each.product; });
        member_[each.product] = groups_.size();
        vanishing_.insert(each.steps.begin(), each.steps.end());
      }
      rest.groups.push_back(groups_.size());
      groups_.push_back(std::move(best));
    }
    if (rest.groups.empty()) return;
    vanishing_.insert(sum.additions.begin(), sum.additions.end());
    sums_[graph_.producer_node(sum.root)] = std::move(rest);
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
