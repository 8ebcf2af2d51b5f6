#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "fullbore/device/recorder.h"

namespace fullbore {

struct RecordedLoop;

/// One launch as it was recorded.
struct RecordedLaunch {
  enum class Kind : uint8_t { kernel, copy, loop };
  Kind kind = Kind::kernel;
  int id = 0;
  const Kernel* kernel = nullptr;
  std::vector<LaunchOperand> operands = {};  ///< of a kernel; source and destination of a copy
  int64_t bytes = 0;                         ///< of a copy
  bool waits = true;
  std::shared_ptr<const RecordedLoop> loop = {};
};

struct RecordedCarry {
  LaunchOperand from;
  LaunchOperand to;
  int64_t bytes = 0;
};

struct RecordedRows {
  LaunchOperand rows;
  int64_t row_bytes = 0;
};

/// Rows [begin, end) of a stack.
struct RowRange {
  int64_t begin = 0;
  int64_t end = 0;
};
/// The rows of a loop's stacks whose iterations were not made: below and above those that were.
/// `most`: iterations that it would have made without `stop`; `executed`: those that it made.
std::array<RowRange, 2> rows_not_made(const LoopRange& range, int64_t most, int64_t executed);

struct RecordedLoop {
  LoopRange range;
  std::vector<RecordedCarry> carries;
  std::vector<RecordedCarry> exchanges;
  std::vector<RecordedRows> cleared;
  std::vector<RecordedLaunch> body;
};

/// A recorder that keeps what it is told as data, to be turned into something that runs by whoever derives from it
/// (finish()). Aborts where loops are not closed in order.
class Recording : public Recorder {
 public:
  void launch(int id, const Kernel& kernel, std::span<const LaunchOperand> operands,
              bool waits) override;
  void copy(int id, const LaunchOperand& from, const LaunchOperand& to, int64_t bytes,
            bool waits) override;
  void carry(const LaunchOperand& from, const LaunchOperand& to, int64_t bytes) override;
  void exchange(const LaunchOperand& from, const LaunchOperand& to, int64_t bytes) override;
  void clear_rows(const LaunchOperand& rows, int64_t row_bytes) override;
  void begin_loop(int id, const LoopRange& range) override;
  void end_loop() override;

 protected:
  std::vector<RecordedLaunch> take();
  /// Launches so far, outside of loops.
  size_t recorded() const { return launches_.size(); }

 private:
  std::vector<RecordedLaunch>& current();

  std::vector<RecordedLaunch> launches_;
  std::vector<std::shared_ptr<RecordedLoop>> open_;  ///< loops that have begun, outermost first
};

}  // namespace fullbore
