#include "fullbore/device/cuda/executor/program_cut.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "fullbore/device/cuda/executor/graph_sink.h"

namespace fullbore::cuda {
namespace {

// A node takes some hundred bytes of the driver's memory and microseconds to build.
constexpr int64_t kMostNodes = 20'000;
// In a body: the launch of a graph takes as long as that of two or three kernels.
constexpr int64_t kFewestNodes = 4;

constexpr int64_t kTooMany = kMostNodes + 1;

/// Counts nodes of a graph that makes launches; kTooMany: more than a graph may have, or it cannot make them.
class NodeCount {
 public:
  explicit NodeCount(bool has_conditional_nodes) : has_conditional_nodes_(has_conditional_nodes) {}

  int64_t of(std::span<const RecordedLaunch> launches) const {
    int64_t nodes = 0;
    for (const RecordedLaunch& launch : launches) nodes = std::min(nodes + of(launch), kTooMany);
    return nodes;
  }
  int64_t of(const RecordedLaunch& launch) const {
    switch (launch.kind) {
      case RecordedLaunch::Kind::kernel:
        return static_cast<int64_t>(dynamic_cast<const CompiledNode&>(*launch.kernel).nodes());
      case RecordedLaunch::Kind::copy: return 1;
      case RecordedLaunch::Kind::loop: break;
    }
    const RecordedLoop& loop = *launch.loop;
    const int64_t iterations = loop.range.iterations;
    const bool is_conditional = depends_on_data(loop.range);
    if (is_conditional && !has_conditional_nodes_) return kTooMany;
    // With the halves of the index; a decision, a conditional node and the end of an iteration.
    const int64_t each =
        of(loop.body) + static_cast<int64_t>(loop.carries.size()) + 2 + (is_conditional ? 3 : 0);
    if (each > kMostNodes || iterations > kMostNodes) return kTooMany;
    const auto exchanges = static_cast<int64_t>(loop.exchanges.size());
    int64_t around = exchanges + 3;
    if (is_conditional)
      around += exchanges + static_cast<int64_t>(loop.cleared.size()) +
                2 * (iterations / chunk_of(iterations) + 1);
    return std::min(each * iterations + around, kTooMany);
  }

 private:
  bool has_conditional_nodes_;
};

/// Ids of the first and the last of them; loops come before their bodies.
std::pair<int, int> range_of(std::span<const RecordedLaunch> launches) {
  if (launches.empty()) return {0, -1};
  const RecordedLaunch* last = &launches.back();
  while (last->kind == RecordedLaunch::Kind::loop && !last->loop->body.empty())
    last = &last->loop->body.back();
  return {launches.front().id, last->id};
}

class Cutter {
 public:
  Cutter(const std::shared_ptr<Context>& context, const ProgramParts& parts, LaunchKinds& kinds,
         size_t first_waiting)
      : context_(context), parts_(parts), kinds_(kinds), first_waiting_(first_waiting) {}

  // From the front: as much as a graph may hold, then a loop that does not fit, and so on.
  void cut(std::span<const RecordedLaunch> launches) {
    const RecordedLoop* const loop = around_.empty() ? nullptr : around_.back();
    const NodeCount count(parts_.conditional != nullptr && around_.empty());
    const size_t first_waiting = loop == nullptr ? first_waiting_ : 0;
    for (size_t begin = 0;; ++begin) {
      const bool waits = first_waiting > 0 && begin == first_waiting;
      ProgramPiece piece{.begin = begin,
                         .end = begin,
                         .sets_index = loop != nullptr && begin == 0,
                         .waits = waits};
      int64_t nodes = piece.sets_index && loop->range.index ? 2 : 0;
      for (; piece.end < launches.size(); ++piece.end) {
        if (piece.end > begin && piece.end == first_waiting) break;
        const RecordedLaunch& next = launches[piece.end];
        const int64_t more = count.of(next);
        // Only loops can be stepped: what is none is in a graph in any case.
        if (next.kind == RecordedLaunch::Kind::loop && nodes + more > left_) break;
        nodes += more;
      }
      begin = piece.end;
      const bool is_last = begin == launches.size();
      piece.carries = loop != nullptr && is_last;
      if (piece.carries) nodes += static_cast<int64_t>(loop->carries.size());
      left_ = std::max<int64_t>(0, left_ - nodes);
      const bool is_empty = piece.begin == piece.end;
      if (nodes >= (loop == nullptr ? 1 : kFewestNodes)) make_graph(piece, launches);
      if (nodes > 0 || (waits && !is_empty)) pieces_[loop].push_back(std::move(piece));
      if (is_last) return;
      if (begin == first_waiting && !is_empty) {
        --begin;  // no loop that is stepped lies between
        continue;
      }
      step(launches[begin]);
      pieces_[loop].push_back({.begin = begin, .end = begin + 1, .waits = waits && is_empty});
    }
  }
  ProgramPieces take() { return std::move(pieces_); }

 private:
  void make_graph(ProgramPiece& piece, std::span<const RecordedLaunch> launches) {
    GraphSink sink(context_, kinds_);
    ProgramWalk walk(parts_, sink);
    walk.piece(piece, around_, launches);
    if (sink.is_empty()) return;
    piece.moves = sink.moves() || (piece.sets_index && around_.back()->range.index);
    piece.iterations = std::move(walk.iterations_made());
    piece.counts_on_card = std::move(walk.counts_on_card());
    std::tie(piece.first, piece.last) =
        range_of(launches.subspan(piece.begin, piece.end - piece.begin));
    piece.graph = sink.finish(piece.moves);
  }

  void step(const RecordedLaunch& launch) {
    around_.push_back(launch.loop.get());
    cut(launch.loop->body);
    around_.pop_back();
  }

  const std::shared_ptr<Context>& context_;
  const ProgramParts& parts_;
  LaunchKinds& kinds_;
  size_t first_waiting_;
  int64_t left_ = kMostNodes;
  std::vector<const RecordedLoop*> around_;  ///< that the host steps, outermost first
  ProgramPieces pieces_;
};

}  // namespace

ProgramPieces cut_program(const std::shared_ptr<Context>& context, const ProgramParts& parts,
                          LaunchKinds& kinds, std::span<const RecordedLaunch> launches,
                          size_t first_waiting) {
  Cutter cutter(context, parts, kinds, first_waiting);
  cutter.cut(launches);
  return cutter.take();
}

}  // namespace fullbore::cuda
