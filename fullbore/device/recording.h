#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "fullbore/device/recorder.h"

namespace fullbore {

struct RecordedLoop;

/// One launch as it was recorded.
struct RecordedLaunch {
  enum class Kind : uint8_t { kernel, copy, clear, loop };
  Kind kind = Kind::kernel;
  int id = 0;
  const Kernel* kernel = nullptr;
  std::vector<LaunchOperand> operands =
      {};             ///< of a kernel; source and destination of a copy; what is cleared
  int64_t bytes = 0;  ///< of a copy or what is cleared
  bool waits = true;
  std::shared_ptr<const RecordedLoop> loop = {};
};

struct RecordedCarry {
  LaunchOperand from;
  LaunchOperand to;
  int64_t bytes = 0;
};

struct RecordedLoop {
  LoopRange range;
  std::vector<RecordedCarry> carries;
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
  void clear(const LaunchOperand& operand, int64_t bytes, bool waits) override;
  void carry(const LaunchOperand& from, const LaunchOperand& to, int64_t bytes) override;
  void begin_loop(int id, const LoopRange& range) override;
  void end_loop() override;

 protected:
  std::vector<RecordedLaunch> take();

 private:
  std::vector<RecordedLaunch>& current();

  std::vector<RecordedLaunch> launches_;
  std::vector<std::shared_ptr<RecordedLoop>> open_;  ///< loops that have begun, outermost first
};

}  // namespace fullbore
