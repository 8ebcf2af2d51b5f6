#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "fullbore/device/recording.h"

namespace fullbore {

/// Walks a recording launch by launch on the calling thread, one lane: for devices that are there to be right or to be
/// looked at, not to be fast. What a launch does is for the class that derives from it.
class SequentialReplay : public Replayable {
 public:
  explicit SequentialReplay(std::vector<RecordedLaunch> launches);

  void bind_batch(std::span<const void* const> host) override;
  void run() override;
  void wait() override {}
  int64_t iterations_made(int loop) const override;
  void set_profiling(bool on) override;
  std::vector<LaneEvents> events() const override;

 protected:
  /// An operand where it is now: an address of the device, or in host memory.
  struct Place {
    Address address;
    const void* host = nullptr;  ///< of the batch; null: `address` it is
  };
  virtual void launch(const Kernel& kernel, std::span<const Place> operands) = 0;
  virtual void copy(Place from, Place to, int64_t bytes) = 0;
  virtual void clear(Place place, int64_t bytes) = 0;  ///< zeros
  /// The i64 or, with `bytes` 1, the bool there; `otherwise` on a device whose memory holds nothing.
  virtual int64_t number(Place place, int64_t bytes, int64_t otherwise) const = 0;
  virtual void set_number(Place place, int64_t value) = 0;

 private:
  Place place(const LaunchOperand& operand) const;
  void walk(const std::vector<RecordedLaunch>& launches);
  void run_loop(int id, const RecordedLoop& loop);
  void finish_loop(const RecordedLoop& loop, int64_t most, int64_t executed);
  void run_once(const RecordedLaunch& launch);

  std::vector<RecordedLaunch> launches_;
  std::vector<const void*> batch_;
  std::vector<int64_t> indices_;            ///< of the loops around, outermost first
  std::vector<int64_t> made_;               ///< iterations that they have made, likewise
  std::map<int, int64_t> iterations_made_;  ///< in the last run, by the loop's id
  bool is_profiling_ = false;
  std::vector<LaunchEvent> events_;
};

}  // namespace fullbore
