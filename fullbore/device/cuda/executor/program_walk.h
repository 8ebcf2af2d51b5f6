#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "fullbore/device/cuda/executor/launch_sink.h"
#include "fullbore/device/recording.h"

namespace fullbore::cuda {

/// What launches of a recorded program refer to on the card.
struct ProgramParts {
  std::map<const Kernel*, LoadedKernel> kernels;
  std::vector<Address> batch;  ///< where the card has the fields
};

/// Goes through a recorded program as it runs, loops included, and tells a sink what happens. Iterations of a parallel loop are
/// made one after another: each fills the card, and the first group's memory serves them all.
class ProgramWalk {
 public:
  ProgramWalk(const ProgramParts& parts, LaunchSink& sink) : parts_(parts), sink_(sink) {}

  void launches(std::span<const RecordedLaunch> launches);
  /// Iterations made by loops, in all, by their ids.
  std::map<int, int64_t>& iterations_made() { return iterations_made_; }

 private:
  Address place(const LaunchOperand& operand) const;
  void launch(const RecordedLaunch& launch);
  void loop(int id, const RecordedLoop& loop);
  void finish_loop(const RecordedLoop& loop, int64_t most, int64_t executed);

  const ProgramParts& parts_;
  LaunchSink& sink_;
  std::vector<int64_t> indices_;  ///< of the loops around, outermost first
  std::vector<int64_t> made_;     ///< iterations that they have made, likewise
  std::map<int, int64_t> iterations_made_;
  std::vector<Address> operands_;
};

}  // namespace fullbore::cuda
