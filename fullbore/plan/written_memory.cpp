#include "fullbore/plan/written_memory.h"

#include <algorithm>

namespace fullbore {
namespace {

class Walk {
 public:
  explicit Walk(const Plan& plan)
      : plan_(plan), uncertain_(plan.buffers.size()), touched_(plan.buffers.size()) {}

  std::vector<ByteRange> ranges() {
    visit(plan_.launches, false);
    for (const int buffer : plan_.result_buffers) touch(buffer);
    std::vector<ByteRange> result;
    for (size_t i = 0; i < touched_.size(); ++i) {
      const Buffer& buffer = plan_.buffers[i];
      if (touched_[i] && buffer.space == Space::arena)
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

  void visit(const std::vector<PlannedLaunch>& launches, bool within_uncertain) {
    for (const PlannedLaunch& launch : launches) {
      for (const int buffer : launch.buffers) touch(buffer);
      if (!launch.loop) continue;
      const LoopPlan& loop = *launch.loop;
      const bool uncertain = within_uncertain || loop.count >= 0 || loop.stop >= 0;
      for (const int slice : loop.slices) uncertain_[static_cast<size_t>(slice)] = uncertain;
      for (const int buffer : {loop.count, loop.stop, loop.index, loop.executed, loop.memory})
        touch(buffer);
      for (const LoopPlan::Carry& carry : loop.carries) {
        touch(carry.from);
        touch(carry.to);
      }
      for (const int stack : loop.cleared) touch(stack);
      visit(loop.body, uncertain);
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
  std::ranges::sort(all, {}, &ByteRange::begin);
  std::vector<ByteRange> merged;
  for (const ByteRange& range : all) {
    if (merged.empty() || range.begin > merged.back().end)
      merged.push_back(range);
    else
      merged.back().end = std::max(merged.back().end, range.end);
  }
  return merged;
}

}  // namespace fullbore
