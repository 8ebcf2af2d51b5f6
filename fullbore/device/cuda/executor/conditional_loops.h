#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "fullbore/device/cuda/executor/launch_sink.h"
#include "fullbore/device/recording.h"

namespace fullbore::cuda {

/// Does it depend on data how many iterations are made?
inline bool depends_on_data(const LoopRange& range) { return range.count || range.stop; }

/// Iterations of a loop that are within one more conditional node together; all: there are no such nodes. An iteration that is
/// not made costs a decision and a node all the same: of n the square root of n, twice, are passed at most.
int64_t chunk_of(int64_t iterations);

/// Loops whose counts depend on data as conditional nodes of a graph: every iteration that may be made is the body of one, at
/// places of its own. What the host would look at and do around them, kernels do (kernels/loops.cpp), by what the card's
/// memory has of each loop. Of a loop that goes backwards from a count, iterations are laid out as if all were made, so that
/// an index always means the same places; what it exchanges is swapped before and behind it if the count is odd where that
/// is even, or even where it is odd.
class ConditionalLoops {
 public:
  /// Null: the program has no such loops, or the driver no conditional nodes, or it does not link what kernels decide by.
  /// `launches` outlive this.
  static std::unique_ptr<ConditionalLoops> of(std::shared_ptr<Context> context,
                                              std::span<const RecordedLaunch> launches);
  ConditionalLoops(std::shared_ptr<Context> context, std::span<const RecordedLoop* const> loops);

  // What a walk tells a sink of a loop.
  ControlLaunch begin(const RecordedLoop& loop, const std::optional<Place>& count) const;
  /// Are there iterations to be made whose index is `first` or more? The sink adds the handle of the condition.
  ControlLaunch decide(const RecordedLoop& loop, int64_t first) const;
  ControlLaunch end_iteration(const RecordedLoop& loop, const std::optional<Place>& stop) const;
  static bool is_crossed(const LoopRange& range) { return range.reverse && range.count; }
  /// Behind a loop, and of one that is crossed before it too.
  ControlLaunch settle(const RecordedLoop& loop, const Place& from, const Place& to,
                       int64_t bytes) const;
  ControlLaunch clear(const RecordedLoop& loop, const Place& rows, int64_t row_bytes) const;
  ControlLaunch finish(const RecordedLoop& loop, const std::optional<Place>& executed) const;

  /// Before the graphs of a run are launched.
  void begin_run();
  size_t number_of(const RecordedLoop& loop) const { return numbers_.at(&loop); }
  /// Iterations that a loop made in the last run, in all. Waits for the run where nobody asked since.
  int64_t iterations(size_t number) const;

 private:
  enum Entry : size_t { begins, decides, ends_iteration, settles, clears, finishes, kEntries };
  class Assembly;
  Place state(const RecordedLoop& loop) const;

  std::shared_ptr<Context> context_;
  std::map<const RecordedLoop*, size_t> numbers_;
  CardMemory states_;
  PinnedMemory seen_states_;
  mutable bool are_seen_ = false;
  std::array<Launch, kEntries> launches_;
  std::array<FunctionHandle, kEntries> functions_ = {};
};

}  // namespace fullbore::cuda
