#include "fullbore/plan/concurrent_launches.h"

#include <algorithm>
#include <vector>

namespace fullbore {
namespace {

// Looking back costs the square of a level's length. Nobody gains by longer ones.
constexpr size_t kMostLaunches = 64;

/// Bytes of one launch's operand.
struct Access {
  Space space = Space::arena;
  int index = -1;  ///< of the State slot
  int64_t begin = 0;
  int64_t end = 0;
  bool written = false;

  bool conflicts(const Access& other) const {
    return (written || other.written) && space == other.space && index == other.index &&
           begin < other.end && other.begin < end;
  }
};

Access access(const Plan& plan, int buffer, bool written) {
  // Which row of it a slice is, is known at run time alone: the whole buffer, then.
  const Buffer* whole = &plan.buffers[static_cast<size_t>(buffer)];
  while (whole->space == Space::slice) whole = &plan.buffers[static_cast<size_t>(whole->base)];
  return {whole->space, whole->index, whole->offset, whole->offset + whole->bytes, written};
}

std::vector<Access> accesses(const Plan& plan, const Graph& graph, const PlannedLaunch& launch) {
  const size_t read = launch.kind == PlannedLaunch::Kind::copy
                          ? 1
                          : graph.nodes()[static_cast<size_t>(launch.node)].inputs.size();
  std::vector<Access> result;
  for (size_t i = 0; i < launch.buffers.size(); ++i)
    result.push_back(access(plan, launch.buffers[i], i >= read));
  return result;
}

void mark(const Plan& plan, const Graph& graph, std::vector<PlannedLaunch>& launches) {
  std::vector<Access> level;
  size_t side_by_side = 0;
  for (PlannedLaunch& launch : launches) {
    if (launch.kind == PlannedLaunch::Kind::loop) {
      mark(plan, *graph.nodes()[static_cast<size_t>(launch.node)].body, launch.loop->body);
      side_by_side = 0;
      continue;
    }
    const std::vector<Access> mine = accesses(plan, graph, launch);
    launch.waits =
        side_by_side == 0 || side_by_side == kMostLaunches ||
        std::ranges::any_of(mine, [&](const Access& a) {
          return std::ranges::any_of(level, [&](const Access& b) { return a.conflicts(b); });
        });
    if (launch.waits) {
      level.clear();
      side_by_side = 0;
    }
    level.insert(level.end(), mine.begin(), mine.end());
    ++side_by_side;
  }
}

}  // namespace

void find_concurrent_launches(Plan& plan) { mark(plan, plan.graph, plan.launches); }

}  // namespace fullbore
