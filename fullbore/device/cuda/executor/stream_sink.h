#pragma once
#include <memory>
#include <string>
#include <vector>

#include "fullbore/device/cuda/driver/in_flight.h"
#include "fullbore/device/cuda/executor/launch_sink.h"
#include "fullbore/device/recorder.h"

namespace fullbore::cuda {

/// Makes launches one after another in the main stream.
class StreamSink final : public LaunchSink {
 public:
  /// `blocking`: waits for each kernel, so that a failure names it. `in_flight` outlives this.
  StreamSink(std::shared_ptr<Context> context, InFlight& in_flight, bool blocking);

  void barrier() override {}  // a stream has one behind every launch
  void kernel(const LoadedKernel& kernel, std::span<const Place> operands) override;
  void copy(const Place& from, const Place& to, int64_t bytes) override;
  void clear(const Place& to, int64_t bytes) override;
  void set_number(const Place& to, int64_t value) override;
  int64_t number(const Place& at, int64_t bytes) override;
  bool reads_numbers() const override { return true; }
  void graph(LaunchableGraph& graph, int first, int last) override;
  void wait_for_copies_behind() override { context_->wait_for_copies_in_main(); }
  void begin_launch(int id) override;
  void end_launch() override;

  /// From the next run on, notes when the card makes each launch, `most` of them.
  void set_profiling(int64_t most);
  void begin_run();
  /// Behind the run: the launches in the order in which they began.
  void end_run();
  std::span<const LaunchEvent> events() const { return events_; }
  int64_t dropped() const { return dropped_; }

 private:
  struct TimedLaunch {
    int id = 0;
    std::unique_ptr<Event> begin, end;
  };

  std::shared_ptr<Context> context_;
  InFlight& in_flight_;
  bool blocking_;
  int launch_ = 0;  ///< id of the one that is made
  ArgumentTable arguments_;
  PinnedMemory number_;
  // Of profiling.
  std::vector<TimedLaunch> timed_;
  std::unique_ptr<Event> first_;
  size_t used_ = 0;
  std::vector<size_t> open_;  ///< launches that have begun and not ended
  int64_t dropped_ = 0;
  int64_t begin_ns_ = 0;
  std::vector<LaunchEvent> events_;
};

}  // namespace fullbore::cuda
