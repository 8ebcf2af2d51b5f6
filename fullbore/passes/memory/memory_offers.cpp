#include "fullbore/passes/memory/memory_offers.h"

#include <algorithm>

#include "fullbore/ir/op_def.h"

namespace fullbore {
namespace {

size_t place(Value value) { return static_cast<size_t>(value.id); }

// Arithmetic that takes as long as moving a byte does. Machines differ by a factor of two or three,
// which hardly changes what is cheap; plans should not depend on where they were made.
constexpr double kFlopsPerByte = 8;
// Values rematerialized for the sake of one: more are hardly ever worth it, and each is looked for in all.
constexpr size_t kMostTogether = 32;

}  // namespace

MemoryOffers::MemoryOffers(const Graph& graph, const NodeOrder& order, Means means)
    : graph_(graph),
      order_(order),
      means_(means),
      withdrawn_(static_cast<size_t>(graph.value_count()), false) {
  for (const Node& node : graph.nodes()) {
    const Cost cost = node_cost(graph, node);
    work_.push_back(cost.flops + kFlopsPerByte * cost.bytes);
  }
}

double MemoryOffers::work_of(Value root) const {
  return work_[static_cast<size_t>(graph_.producer(root))];
}

std::vector<MemoryOffer> MemoryOffers::best(size_t most) {
  find_candidates();
  most = std::min({most, candidates_.size(), std::max<size_t>(1, candidates_.size() / kShare)});
  const auto last = candidates_.begin() + static_cast<std::ptrdiff_t>(most);
  std::partial_sort(candidates_.begin(), last, candidates_.end(),
                    [](const Candidate& a, const Candidate& b) {
                      if (a.bytes_per_work != b.bytes_per_work)
                        return a.bytes_per_work > b.bytes_per_work;
                      return a.peak != b.peak ? a.peak < b.peak : a.root < b.root;
                    });
  std::vector<MemoryOffer> offers;
  for (auto candidate = candidates_.begin(); candidate != last; ++candidate) {
    Price price;
    add_price(candidate->root, candidate->last_read, candidate->peak, price);
    offers.push_back({candidate->root, std::move(price.rematerialized)});
  }
  return offers;
}

void MemoryOffers::find_candidates() {
  const std::vector<NodeOrder::Execution>& launches = order_.executions();
  const int64_t peak_bytes = order_.peak_bytes();
  next_peak_.assign(launches.size() + 1, launches.size());
  for (size_t i = launches.size(); i-- > 0;)
    next_peak_[i] = order_.bytes_at(i) == peak_bytes ? i : next_peak_[i + 1];
  candidates_.clear();
  seen_.assign(static_cast<size_t>(graph_.value_count()), {});
  for (size_t i = 0; i < launches.size(); ++i) {
    const auto [node, again, at] = launches[i];
    for (Value root : order_.operands(node)) {
      if (order_.reads_again(root, at)) continue;
      consider(root, i);
      seen_[place(root)] = {static_cast<int>(i), at};
    }
    if (!again)
      for (Value output : graph_.nodes()[static_cast<size_t>(node)].outputs)
        seen_[place(output)] = {static_cast<int>(i), -1};
  }
}

// The value is read by launch `next`, and was made or read before. Of the launches in between that need
// most the first counts: the further back, the more of the operands are still alive.
void MemoryOffers::consider(Value root, size_t next) {
  const Seen seen = seen_[place(root)];
  if (seen.launch < 0) return;
  const size_t peak = next_peak_[static_cast<size_t>(seen.launch) + 1];
  if (peak >= next || order_.bytes_of(root) == 0 || order_.is_rematerialized(root) ||
      withdrawn_[place(root)] || graph_.producer(root) < 0 ||
      order_.life(root).last == static_cast<int>(order_.executions().size()) ||
      std::max(seen.read_by, graph_.producer(root)) >= order_.executions()[next].at)
    return;
  Price price;
  if (!add_price(root, seen.read_by, peak, price)) return;
  if (price.again && means_ == Means::order) return;
  const auto freed = static_cast<double>(order_.bytes_of(root) - price.extended);
  candidates_.push_back({freed / price.work, peak, root, seen.read_by});
}

// Adds what it takes to make `root` again behind the launch `peak`. What its maker reads is there if it
// lives beyond the peak or is to be rematerialized anyhow. Else it is rematerialized too, where that is no more
// work than the root's own node and extends no other life, or else it must live across the peak itself.
// False if what must live across the peak has as many bytes as the root: nothing would be gained.
bool MemoryOffers::add_price(Value root, int last_read, size_t peak, Price& price) const {
  const int maker = graph_.producer(root);
  const double work = work_of(root);
  price.rematerialized.emplace_back(root, std::max(last_read, maker));
  if (last_read >= 0 || graph_.nodes()[static_cast<size_t>(maker)].outputs.size() > 1) {
    price.work += work;
    price.again = true;
  }
  for (Value operand : order_.operands(maker)) {
    if (order_.bytes_of(operand) == 0 || order_.is_rematerialized(operand) ||
        order_.life(operand).last >= static_cast<int>(peak) ||
        std::any_of(price.rematerialized.begin(), price.rematerialized.end(),
                    [&](const auto& made) { return made.first == operand; }))
      continue;
    const Price without = {{}, price.work, price.again, price.extended};
    const size_t made = price.rematerialized.size();
    if (work_of(operand) <= work && made < kMostTogether &&
        add_price(operand, seen_[place(operand)].read_by, peak, price) &&
        price.extended == without.extended)
      continue;
    price.rematerialized.resize(made);
    price.work = without.work;
    price.again = without.again;
    price.extended = without.extended + order_.bytes_of(operand);
  }
  return price.extended < order_.bytes_of(root);
}

}  // namespace fullbore
