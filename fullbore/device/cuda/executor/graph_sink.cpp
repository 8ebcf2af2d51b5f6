#include "fullbore/device/cuda/executor/graph_sink.h"

#include <utility>

#include "fullbore/base/check.h"

namespace fullbore::cuda {
namespace {

/// The condition of a level as bytes that a decision writes and its conditional node reads: above all of a card's memory.
MemoryAccess condition_of(int level, bool is_written) {
  constexpr uint64_t kConditions = uint64_t{1} << 63;
  const uint64_t begin = kConditions + static_cast<uint64_t>(level);
  return {.begin = begin, .end = begin + 1, .is_written = is_written};
}

}  // namespace

GraphSink::GraphSink(std::shared_ptr<Context> context, LaunchKinds& kinds)
    : context_(std::move(context)), kinds_(kinds), levels_(1), open_(1) {
  contents_.graph = std::make_unique<OwnedGraph>(context_);
}

void GraphSink::touch(const Place& place, int64_t bytes, bool is_written) {
  moves_ |= place.moves();
  const auto touch_from = [&](Address address) {
    accesses_.push_back({.begin = (address + place.least).value,
                         .end = (address + place.most + bytes).value,
                         .is_written = is_written});
  };
  touch_from(place.address);
  for (const Address other : place.others) touch_from(other);
}

void GraphSink::touch(const ControlLaunch& launch) {
  for (size_t i = 0; i < launch.operands.size(); ++i)
    touch(launch.operands[i], launch.uses[i].bytes, launch.uses[i].is_written);
}

void GraphSink::add(NodeContent content) {
  OpenLevel& open = open_.back();
  GraphLevel& level = levels_[static_cast<size_t>(open.number)];
  level.nodes.push_back(static_cast<int>(contents_.nodes.size()));
  contents_.nodes.push_back(std::move(content));
  level.follows.push_back(open.hazards.add(accesses_));
  if (open_.size() > 1)
    open.accesses.insert(open.accesses.end(), accesses_.begin(), accesses_.end());
  accesses_.clear();
}

void GraphSink::kernel(const LoadedKernel& kernel, std::span<const Place> operands) {
  if (kernel.is_empty()) return;
  const std::vector<int64_t>& bytes = kernel.node->operand_bytes();
  for (size_t i = 0; i < operands.size(); ++i)
    touch(operands[i], i < bytes.size() ? bytes[i] : kernel.node->scratch_bytes(1),
          i >= kernel.node->inputs());
  add(KernelCall{&kernel, {operands.begin(), operands.end()}});
}

void GraphSink::copy(const Place& from, const Place& to, int64_t bytes) {
  int64_t copied = 0;
  for (const CopyNode& node : copy_nodes(*context_, from.address, to.address, bytes)) {
    const auto count = static_cast<int64_t>(node.width_bytes);
    touch(behind(from, copied), count, false);
    touch(behind(to, copied), count, true);
    add(node);
    copied += count;
  }
}

void GraphSink::clear(const Place& to, int64_t bytes) {
  if (bytes <= 0) return;
  touch(to, bytes, true);
  add(fill_node(to.address, 0, 1, bytes));
}

void GraphSink::set_number(const Place& to, int64_t value) {
  int64_t filled = 0;
  for (const FillNode& node : number_nodes(to.address, value)) {
    touch(behind(to, filled), node.element_bytes, true);
    add(node);
    filled += node.element_bytes;
  }
}

int64_t GraphSink::number(const Place&, int64_t) {
  FB_CHECK(false, "a graph does not know what a number in memory will be");
  return 0;
}

void GraphSink::control(const ControlLaunch& launch) {
  touch(launch);
  add(ControlCall{.control = launch});
}

void GraphSink::begin_conditional(const ControlLaunch& decision) {
  const auto level = static_cast<int>(levels_.size());
  levels_.emplace_back();
  touch(decision);
  accesses_.push_back(condition_of(level, true));
  add(ControlCall{.control = decision, .decides = level});
  open_.push_back({.number = level});
  contents_.has_conditional_nodes = true;
}

void GraphSink::end_conditional() {
  FB_CHECK(open_.size() > 1, "no conditional node has begun");
  OpenLevel body = std::move(open_.back());
  open_.pop_back();
  accesses_ = joined(std::move(body.accesses));
  accesses_.push_back(condition_of(body.number, false));
  add(ConditionalBody{.level = body.number});
}

void GraphSink::graph(LaunchableGraph&, int, int) {
  FB_CHECK(false, "a graph has no graphs in it");
}

std::unique_ptr<LaunchableGraph> GraphSink::finish(bool moves) {
  FB_CHECK(open_.size() == 1, "{} conditional nodes have not ended", open_.size() - 1);
  make_nodes(context_, kinds_, levels_, contents_);
  return std::make_unique<LaunchableGraph>(context_, std::move(contents_), moves);
}

}  // namespace fullbore::cuda
