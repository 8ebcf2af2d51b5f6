#include "fullbore/plan/written_memory.h"

#include <algorithm>
#include <utility>

#include "fullbore/ops/counted_rows.h"

namespace fullbore {
namespace {

class Walk {
 public:
  explicit Walk(const Plan& plan)
      : plan_(plan), uncertain_(plan.buffers.size()), touched_(plan.buffers.size()) {}

  std::vector<ByteRange> ranges() {
    visit(plan_.launches, plan_.graph, false);
    for (const int buffer : plan_.result_buffers) touch(buffer);
    std::vector<ByteRange> result;
    for (size_t i = 0; i < touched_.size(); ++i) {
      const Buffer& buffer = plan_.buffers[i];
      if (touched_[i] && buffer.space == Space::arena && buffer.bytes > 0)
        result.push_back({buffer.offset, buffer.offset + buffer.bytes});
    }
    return result;
  }

 private:
  // A row of another buffer stands for all of it, unless a loop on the way may end before its bound.
  void touch(int buffer) {
    while (buffer >= 0 && plan_.buffers[static_cast<size_t>(buffer)].space == Space::slice) {
      if (uncertain_[static_cast<size_t>(buffer)]) return;
      buffer = plan_.buffers[static_cast<size_t>(buffer)].base;
    }
    if (buffer >= 0) touched_[static_cast<size_t>(buffer)] = true;
  }

  void touch_operands(const PlannedLaunch& launch, const Graph& graph) {
    const Node* const node =
        launch.node >= 0 ? &graph.nodes()[static_cast<size_t>(launch.node)] : nullptr;
    for (size_t i = 0; i < launch.buffers.size(); ++i) {
      // Of tensors of so many rows as a count says, all of them may be needed or none.
      const bool counted = node && has_counted_rows(*node) && (i == 0 || i == node->inputs.size());
      if (!counted) touch(launch.buffers[i]);
    }
  }

  // `graph`: the one that the launches are of.
  void visit(const std::vector<PlannedLaunch>& launches, const Graph& graph,
             bool within_uncertain) {
    for (const PlannedLaunch& launch : launches) {
      touch_operands(launch, graph);
      if (!launch.loop) continue;
      const LoopPlan& loop = *launch.loop;
      const bool uncertain = within_uncertain || loop.count >= 0 || loop.stop >= 0;
      for (const int slice : loop.slices) uncertain_[static_cast<size_t>(slice)] = uncertain;
      for (const int buffer : {loop.count, loop.stop, loop.index, loop.executed, loop.memory})
        touch(buffer);
      for (const LoopPlan::Carry& carry : loop.carries) {
        if (carry.exchanged) continue;  // they are what their makers and readers make of them
        touch(carry.from);
        touch(carry.to);
      }
      for (const int stack : loop.cleared) touch(stack);
      visit(loop.body, *graph.nodes()[static_cast<size_t>(launch.node)].body, uncertain);
    }
  }

  const Plan& plan_;
  std::vector<bool> uncertain_;  ///< slices
  std::vector<bool> touched_;
};

}  // namespace

std::vector<ByteRange> written_memory(std::span<const Plan* const> plans) {
  std::vector<ByteRange> all;
  for (const Plan* plan : plans) {
    const std::vector<ByteRange> own = Walk(*plan).ranges();
    all.insert(all.end(), own.begin(), own.end());
  }
  return merged(std::move(all));
}

std::vector<ByteRange> merged(std::vector<ByteRange> ranges) {
  std::ranges::sort(ranges, {}, &ByteRange::begin);
  std::vector<ByteRange> result;
  for (const ByteRange& range : ranges) {
    if (result.empty() || range.begin > result.back().end)
      result.push_back(range);
    else
      result.back().end = std::max(result.back().end, range.end);
  }
  return result;
}

}  // namespace fullbore
