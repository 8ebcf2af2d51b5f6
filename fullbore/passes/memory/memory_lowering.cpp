#include "fullbore/passes/memory/memory_lowering.h"

#include <algorithm>
#include <compare>
#include <limits>
#include <map>
#include <span>
#include <utility>

#include "fullbore/ir/loop.h"
#include "fullbore/ir/tensor.h"
#include "fullbore/passes/memory/memory_offers.h"
#include "fullbore/passes/memory/node_order.h"

namespace fullbore {
namespace {

size_t place(Value value) { return static_cast<size_t>(value.id); }

// Each looks at the whole graph: time stays in proportion to its size.
constexpr int kMostRounds = 1000;

int carried_by(const Node& node) { return LoopShape(node).carried; }

int64_t arena_bytes(const Graph& graph, int carried);

NodeOrder order_of(const Graph& graph, int carried) {
  NodeOrder order(graph, carried);
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const Node& node = graph.nodes()[i];
    if (is_loop(node))
      order.set_inner_bytes(static_cast<int>(i), arena_bytes(*node.body, carried_by(node)));
  }
  order.arrange();
  return order;
}

int64_t arena_bytes(const Graph& graph, int carried) {
  return order_of(graph, carried).peak_bytes();
}

/// One graph, a step or a loop's body, until its estimate is at most `limit` bytes.
class Lowering {
 public:
  Lowering(const Graph& graph, int64_t limit, Means means, int carried)
      : graph_(graph),
        limit_(limit),
        means_(means),
        order_(order_of(graph, carried)),
        offers_(graph, order_, means) {}

  Graph run() {
    while (order_.peak_bytes() > limit_ && (lower_body() || give_up_some())) {
    }
    keep_what_may_be();
    return write();
  }
  int64_t bytes() const { return order_.peak_bytes(); }

 private:
  // The peak is in a loop whose body has not been looked at.
  bool lower_body() {
    const int node = order_.executions()[order_.peak()].node;
    const int64_t inner = order_.inner_bytes(node);
    if (inner == 0 || bodies_.contains(node)) return false;
    const Node& loop = graph_.nodes()[static_cast<size_t>(node)];
    Lowering body(*loop.body, std::max<int64_t>(0, limit_ - (order_.peak_bytes() - inner)), means_,
                  carried_by(loop));
    bodies_[node] = std::make_shared<const Graph>(body.run());
    order_.set_inner_bytes(node, body.bytes());
    order_.arrange();
    return true;
  }

  // One value in a small graph, many at a time in a large one; half as many where that gains nothing.
  bool give_up_some() {
    while (rounds_ < kMostRounds) {
      const std::vector<MemoryOffer> offers = offers_.best(at_once_);
      if (offers.empty()) return false;
      const Need before = need();
      for (size_t count = offers.size(); count > 0; count /= 2) {
        ++rounds_;
        if (!give_up({offers.data(), count}, before)) continue;
        at_once_ = 2 * count;
        return true;
      }
      order_.arrange();
      offers_.withdraw(offers.front().root);
      at_once_ = 1;
    }
    return false;
  }

  /// The second number tells progress from none where several launches need as much as the worst one.
  struct Need {
    int64_t peak = 0;
    int64_t above = 0;  ///< the limit, over all launches
    auto operator<=>(const Need&) const = default;
  };
  Need need() const {
    Need result{order_.peak_bytes(), 0};
    for (size_t i = 0; i < order_.executions().size(); ++i)
      result.above += std::max<int64_t>(0, order_.bytes_at(i) - limit_);
    return result;
  }

  // False if that lowers nothing: what is to be rematerialized is then as before, but not arranged.
  bool give_up(std::span<const MemoryOffer> offers, const Need& before) {
    std::vector<Value> roots;
    for (const MemoryOffer& offer : offers)
      for (const auto& [root, last] : offer.rematerialized) {
        if (order_.is_rematerialized(root)) continue;  // for another offer
        order_.rematerialize(root, last);
        roots.push_back(root);
      }
    order_.arrange();
    if (need() < before) return true;
    for (const Value root : roots) order_.keep(root);
    return false;
  }

  // What has been given up early may have become needless: most work first, many at a time.
  void keep_what_may_be() {
    if (limit_ == 0) return;
    std::vector<std::pair<Value, int>> given_up;
    for (int i = 0; i < graph_.value_count(); ++i)
      if (order_.is_rematerialized({i})) given_up.emplace_back(Value{i}, order_.last_read({i}));
    std::stable_sort(given_up.begin(), given_up.end(), [&](const auto& a, const auto& b) {
      return offers_.work_of(a.first) > offers_.work_of(b.first);
    });
    const size_t most = std::max<size_t>(1, given_up.size() / MemoryOffers::kShare);
    size_t at_once = most;
    int64_t allowed = std::max(limit_, order_.peak_bytes());
    size_t done = 0;
    for (int rounds = 0; done < given_up.size() && rounds < kMostRounds; ++rounds) {
      const size_t count = std::min(at_once, given_up.size() - done);
      const std::span<const std::pair<Value, int>> some(given_up.data() + done, count);
      for (const auto& [root, last] : some) order_.keep(root);
      order_.arrange();
      const bool fits = order_.peak_bytes() <= allowed;
      if (fits)
        allowed = std::max(limit_, order_.peak_bytes());
      else
        for (const auto& [root, last] : some) order_.rematerialize(root, last);
      if (fits || count == 1) done += count;
      at_once = fits ? std::min(most, 2 * count) : std::max<size_t>(1, count / 2);
    }
    order_.arrange();
  }

  Graph write() {
    GraphBuilder builder(graph_.name());
    for (std::vector<Tensor>& made : made_)
      made.assign(static_cast<size_t>(graph_.value_count()), Tensor());
    for (const Graph::Input& input : graph_.inputs())
      made_[0][place(input.value)] = builder.input_like(input, graph_.type(input.value));
    for (const NodeOrder::Execution& launch : order_.executions()) {
      Node node = graph_.nodes()[static_cast<size_t>(launch.node)];
      std::vector<Tensor> operands;
      for (Value input : node.inputs)
        operands.push_back(
            read(builder, input, order_.reads_again(order_.root_of(input), launch.at) ? 1 : 0));
      const auto body = bodies_.find(launch.node);
      if (body != bodies_.end()) node.body = body->second;
      const std::vector<Tensor> results = builder.emit_like(node, operands);
      for (size_t i = 0; i < results.size(); ++i)
        made_[launch.again ? 1 : 0][place(node.outputs[i])] = results[i];
    }
    for (const Graph::Output& output : graph_.outputs())
      builder.output(output.name, read(builder, output.value, 0), output.updates);
    return builder.take();
  }

  Tensor read(GraphBuilder& builder, Value value, size_t making) {
    Tensor& made = made_[making][place(value)];
    if (!made.valid()) {  // the same bytes under another shape
      const Node& node = *graph_.producer_node(value);
      const Tensor operand = read(builder, node.inputs[0], making);
      made = builder.emit_like(node, std::vector<Tensor>{operand})[0];
    }
    return made;
  }

  const Graph& graph_;
  const int64_t limit_;
  const Means means_;
  NodeOrder order_;
  std::map<int, std::shared_ptr<const Graph>> bodies_;  // of loops that have been looked at
  MemoryOffers offers_;
  int rounds_ = 0;
  size_t at_once_ = std::numeric_limits<size_t>::max();  // values to give up in one round
  std::vector<Tensor> made_[2];
};

}  // namespace

Graph lower_memory(const Graph& graph, int64_t limit, Means means) {
  return Lowering(graph, limit, means, -1).run();
}

int64_t estimated_arena_bytes(const Graph& graph) { return arena_bytes(graph, -1); }

}  // namespace fullbore
