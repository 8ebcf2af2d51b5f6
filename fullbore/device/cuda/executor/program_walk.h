#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "fullbore/device/cuda/executor/conditional_loops.h"
#include "fullbore/device/cuda/executor/launch_sink.h"
#include "fullbore/device/recording.h"

namespace fullbore::cuda {

/// What launches of a recorded program refer to on the card.
struct ProgramParts {
  std::map<const Kernel*, LoadedKernel> kernels;
  std::vector<Address> batch;  ///< where the card has the fields
  const ConditionalLoops* conditional =
      nullptr;  ///< null: the host steps loops that depend on data
};

/// How many iterations a loop makes that is in conditional nodes: `each` for each iteration of a loop that the card counts.
struct CountOnCard {
  size_t loop = 0;  ///< ConditionalLoops::number_of()
  int64_t each = 1;
};

/// Launches [begin, end) of a program, or of an iteration of a loop's body.
struct ProgramPiece {
  size_t begin = 0, end = 0;
  /// Of an iteration: does it set the index before, does it carry values behind?
  bool sets_index = false, carries = false;
  bool waits = false;                           ///< for copies that the run before has left
  std::shared_ptr<LaunchableGraph> graph = {};  ///< null: launch by launch
  // Of a graph:
  bool moves = false;                      ///< does it have to be told each time where things are?
  int first = 0, last = -1;                ///< ids of its launches
  std::map<int, int64_t> iterations = {};  ///< that its loops make, by their ids
  std::map<int, CountOnCard> counts_on_card = {};  ///< of those in conditional nodes
};
/// By loops that the host steps; null: of the program.
using ProgramPieces = std::map<const RecordedLoop*, std::vector<ProgramPiece>>;

/// Goes through a recorded program as it runs, loops included, and tells a sink what happens. Iterations of a parallel loop are
/// made one after another: each fills the card, and the first group's memory serves them all.
class ProgramWalk {
 public:
  /// `pieces`: where there are graphs; null: nowhere.
  ProgramWalk(const ProgramParts& parts, LaunchSink& sink, const ProgramPieces* pieces = nullptr)
      : parts_(parts), sink_(&sink), pieces_(pieces) {}

  void program(std::span<const RecordedLaunch> launches) { iteration(nullptr, launches); }
  /// A piece in the first iteration of loops around it, outermost first, with places in all of their iterations. `loop`: the
  /// innermost of them, or null.
  void piece(const ProgramPiece& piece, std::span<const RecordedLoop* const> around,
             std::span<const RecordedLaunch> launches);
  /// Iterations made by loops, in all, by their ids.
  std::map<int, int64_t>& iterations_made() { return iterations_made_; }
  /// Of the others, which are conditional nodes or within some.
  std::map<int, CountOnCard>& counts_on_card() { return counts_on_card_; }

 private:
  Place place(const LaunchOperand& operand) const;
  std::optional<Place> place(const std::optional<LaunchOperand>& operand) const;
  void launches(std::span<const RecordedLaunch> launches);
  void launch(const RecordedLaunch& launch);
  void loop(int id, const RecordedLoop& loop);
  void conditional_loop(int id, const RecordedLoop& loop);
  void conditional_iterations(const RecordedLoop& loop, int64_t begin, int64_t end);
  void iteration(const RecordedLoop* loop, std::span<const RecordedLaunch> launches);
  void make(const ProgramPiece& piece, const RecordedLoop* loop,
            std::span<const RecordedLaunch> launches);
  void run(const ProgramPiece& piece, const RecordedLoop* loop,
           std::span<const RecordedLaunch> launches);
  void finish_loop(const RecordedLoop& loop, int64_t most, int64_t executed);

  const ProgramParts& parts_;
  LaunchSink* sink_;
  const ProgramPieces* pieces_;
  std::span<const RecordedLoop* const> around_;  ///< of which all iterations are meant
  std::vector<int64_t> indices_;                 ///< of the loops around, outermost first
  std::vector<int64_t> made_;                    ///< iterations that they have made, likewise
  std::map<int, int64_t> iterations_made_;
  std::map<int, CountOnCard> counts_on_card_;
  std::optional<CountOnCard>
      counts_;  ///< of iterations of the innermost loop around, in conditional nodes
  std::vector<Place> operands_;
};

}  // namespace fullbore::cuda
