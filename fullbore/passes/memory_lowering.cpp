#include "fullbore/passes/memory_lowering.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "fullbore/ir/loop.h"
#include "fullbore/ir/op_def.h"
#include "fullbore/ir/tensor.h"
#include "fullbore/passes/node_order.h"

namespace fullbore {
namespace {

size_t place(Value value) { return static_cast<size_t>(value.id); }

// Arithmetic that takes as long as moving a byte does. Machines differ by a factor of two or three,
// which hardly changes what is cheap; plans should not depend on where they were made.
constexpr double kFlopsPerByte = 8;

double work_of(const Graph& graph, const Node& node) {
  const Cost cost = node_cost(graph, node);
  return cost.flops + kFlopsPerByte * cost.bytes;
}

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
      : graph_(graph), limit_(limit), means_(means), order_(order_of(graph, carried)) {}

  Graph run() {
    while (order_.peak_bytes() > limit_ && (lower_body() || give_up_one())) {
    }
    keep_what_may_be();
    return write();
  }
  int64_t bytes() const { return order_.peak_bytes(); }

 private:
  /// A value that might be made again (or later, if nobody reads it before), and what else must be.
  struct Offer {
    std::map<Value, int> made_again;  ///< root -> last node that reads its first making
    double work = 1;
    bool again = false;    ///< is any node executed twice?
    int64_t extended = 0;  ///< bytes that would have to live across the peak instead

    double bytes_per_work(int64_t bytes) const {
      return static_cast<double>(bytes - extended) / work;
    }
  };

  // The peak is in a loop whose body has not been looked at.
  bool lower_body() {
    const int node = order_.launches()[order_.peak()].node;
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

  bool give_up_one() {
    for (;;) {
      const std::optional<Value> best = best_offer();
      if (!best) return false;
      tried_.insert(*best);
      const int64_t peak = order_.peak_bytes();
      const int64_t above = bytes_above();
      for (const auto& [root, last] : offer_.made_again) order_.make_again(root, last);
      order_.arrange();
      if (order_.peak_bytes() < peak || (order_.peak_bytes() == peak && bytes_above() < above))
        return true;
      for (const auto& [root, last] : offer_.made_again) order_.keep(root);
      order_.arrange();
    }
  }

  // Tells progress from none where several launches need as much as the worst one.
  int64_t bytes_above() const {
    int64_t sum = 0;
    for (size_t i = 0; i < order_.launches().size(); ++i)
      sum += std::max<int64_t>(0, order_.bytes_at(i) - limit_);
    return sum;
  }

  // At any of the launches that need most.
  std::optional<Value> best_offer() {
    std::optional<Value> best;
    double most = 0;
    for (size_t i = order_.peak(); i < order_.launches().size(); ++i)
      if (order_.bytes_at(i) == order_.peak_bytes()) find_best(i, most, best);
    return best;
  }

  void find_best(size_t peak, double& most, std::optional<Value>& best) {
    find_reads(peak);
    for (size_t i = 0; i < reads_.size(); ++i) {
      const Value root{static_cast<int32_t>(i)};
      if (!may_give_up(root, peak)) continue;
      Offer offer;
      if (!price(root, peak, static_cast<size_t>(reads_[i].next), offer)) continue;
      if (offer.again && means_ == Means::order) continue;
      const double worth = offer.bytes_per_work(order_.bytes_of(root));
      if (worth <= most) continue;
      most = worth;
      best = root;
      offer_ = std::move(offer);
    }
  }

  // Of every root's first making: the last read before the launch `peak`, the first behind it.
  void find_reads(size_t peak) {
    reads_.assign(static_cast<size_t>(graph_.value_count()), {});
    for (size_t i = 0; i < order_.launches().size(); ++i) {
      const NodeOrder::Launch& launch = order_.launches()[i];
      const Node& node = graph_.nodes()[static_cast<size_t>(launch.node)];
      for (size_t k = 0; k < node.inputs.size(); ++k) {
        if (launch.reads_again[k]) continue;
        Reads& reads = reads_[place(order_.root_of(node.inputs[k]))];
        if (i == peak) reads.at_peak = true;
        if (i < peak) reads.last = launch.at;
        if (i > peak && reads.next < 0) reads.next = static_cast<int>(i);
      }
    }
  }

  bool may_give_up(Value root, size_t peak) const {
    const Reads& reads = reads_[place(root)];
    return order_.bytes_of(root) > 0 && !order_.is_made_again(root) && !tried_.contains(root) &&
           !reads.at_peak && reads.next >= 0 && graph_.producer(root) >= 0 &&
           order_.life(root).first < static_cast<int>(peak) &&
           order_.life(root).last < static_cast<int>(order_.launches().size()) &&
           last_read(root) < order_.launches()[static_cast<size_t>(reads.next)].at;
  }

  int last_read(Value root) const {
    return std::max(reads_[place(root)].last, graph_.producer(root));
  }

  // What it costs to make `root` again before launch `next`. False if that needs what no longer lives
  // and cannot be made again.
  bool price(Value root, size_t peak, size_t next, Offer& offer) const {
    const Node& node = graph_.nodes()[static_cast<size_t>(graph_.producer(root))];
    const double work = work_of(graph_, node);
    offer.made_again[root] = last_read(root);
    if (reads_[place(root)].last >= 0 || node.outputs.size() > 1) {
      offer.work += work;
      offer.again = true;
    }
    for (Value input : node.inputs) {
      const Value operand = order_.root_of(input);
      const NodeOrder::Life& life = order_.life(operand);
      if (order_.bytes_of(operand) == 0 || order_.is_made_again(operand) ||
          offer.made_again.contains(operand) || life.last >= static_cast<int>(next) ||
          life.last >= static_cast<int>(peak))
        continue;
      // It is dead by the peak. Cheaper than the value itself, it is made again too.
      const Node& maker = graph_.nodes()[static_cast<size_t>(graph_.producer(operand))];
      Offer together = offer;
      if (work_of(graph_, maker) <= work && price(operand, peak, next, together) &&
          together.extended <= offer.extended)
        offer = std::move(together);
      else
        offer.extended += order_.bytes_of(operand);
    }
    return offer.extended < order_.bytes_of(root);
  }

  // What has been given up early may have become needless.
  void keep_what_may_be() {
    if (limit_ == 0) return;
    std::vector<std::pair<Value, int>> given_up(order_.made_again().begin(),
                                                order_.made_again().end());
    const auto work = [&](Value root) {
      return work_of(graph_, graph_.nodes()[static_cast<size_t>(graph_.producer(root))]);
    };
    std::stable_sort(given_up.begin(), given_up.end(),
                     [&](const auto& a, const auto& b) { return work(a.first) > work(b.first); });
    for (const auto& [root, last] : given_up) {
      const int64_t peak = std::max(limit_, order_.peak_bytes());
      order_.keep(root);
      order_.arrange();
      if (order_.peak_bytes() <= peak) continue;
      order_.make_again(root, last);
      order_.arrange();
    }
  }

  Graph write() {
    GraphBuilder builder(graph_.name());
    for (std::vector<Tensor>& made : made_)
      made.assign(static_cast<size_t>(graph_.value_count()), Tensor());
    for (const Graph::Input& input : graph_.inputs())
      made_[0][place(input.value)] =
          builder.input(input.name, input.role, graph_.type(input.value));
    for (const NodeOrder::Launch& launch : order_.launches()) {
      Node node = graph_.nodes()[static_cast<size_t>(launch.node)];
      std::vector<Tensor> operands;
      for (size_t i = 0; i < node.inputs.size(); ++i)
        operands.push_back(read(builder, node.inputs[i], launch.reads_again[i] ? 1 : 0));
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

  struct Reads {
    int last = -1;  ///< node
    int next = -1;  ///< launch
    bool at_peak = false;
  };

  const Graph& graph_;
  const int64_t limit_;
  const Means means_;
  NodeOrder order_;
  std::map<int, std::shared_ptr<const Graph>> bodies_;  // of loops that have been looked at
  std::set<Value> tried_;
  std::vector<Reads> reads_;  // per value
  Offer offer_;               // the best one's
  std::vector<Tensor> made_[2];
};

}  // namespace

Graph lower_memory(const Graph& graph, int64_t limit, Means means) {
  return Lowering(graph, limit, means, -1).run();
}

int64_t estimated_arena_bytes(const Graph& graph) { return arena_bytes(graph, -1); }

}  // namespace fullbore
