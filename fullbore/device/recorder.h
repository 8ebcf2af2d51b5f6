#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "fullbore/device/address.h"
#include "fullbore/device/kernel.h"

namespace fullbore {

/// Where a launch finds its bytes: at `base`, or in a field of the batch that is bound at run time; moved by the
/// loops around the launch, from the outermost inwards, by index * stride each. Missing strides are 0.
struct LaunchOperand {
  Address base = {};
  int batch_input = -1;  ///< index into bind_batch(); -1: `base` is the place
  std::vector<int64_t> strides = {};
  /// Where it lies in what loops around exchange (Recorder::exchange): depths of those loops, and the bases by the
  /// parities of the iterations that they have made, bit i being the parity of loop exchanged_by[i]. 2^depths bases, the
  /// first of which is `base`; both are empty where nothing is exchanged.
  std::vector<size_t> exchanged_by = {};
  std::vector<Address> exchanged_bases = {};
};

/// How a loop is walked. What a launch inside it sees as the loop's index goes from 0 to executed - 1, backwards with
/// `reverse`.
struct LoopRange {
  int64_t iterations = 0;  ///< at most, where there is `count` or `stop`
  bool reverse = false;
  /// Of a parallel loop: thread groups that run iterations side by side, one after another each.
  int groups = 1;
  /// Operands within the first copy of this memory, [group_memory, group_memory + group_stride), move by
  /// group * group_stride.
  Address group_memory = {};
  int64_t group_stride = 0;
  std::optional<LaunchOperand> count = {};  ///< i64, read once: no more iterations than that
  std::optional<LaunchOperand> stop =
      {};  ///< bool, read after each iteration and its carries: no further one if true
  std::optional<LaunchOperand> index = {};     ///< i64, written before each iteration
  std::optional<LaunchOperand> executed = {};  ///< i64, written after the loop
};

/// One lane's part of one launch, by the steady clock.
struct LaunchEvent {
  int32_t launch = 0;  ///< the id that it was recorded with
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
};

/// What one lane (a worker, a stream) did in the last run, in the order in which it began.
struct LaneEvents {
  int lane = 0;
  std::span<const LaunchEvent> events;
  int64_t dropped = 0;  ///< launches that there was no room for
};

/// A recorded program.
class Replayable {
 public:
  virtual ~Replayable() = default;
  /// The batch of the next run: one pointer to host memory per batch input, 64-byte aligned, valid until wait().
  /// A CPU reads it in place, other devices copy it.
  virtual void bind_batch(std::span<const void* const> host) = 0;
  /// Everything once. May return before it has happened.
  virtual void run() = 0;
  /// Until the last run is complete. Throws what a launch of it met.
  virtual void wait() = 0;
  /// Iterations that a loop made in the last run, by the id of its launch: in all, where it was begun several times. Less
  /// than 0: the device does not say.
  virtual int64_t iterations_made(int loop) const {
    (void)loop;
    return -1;
  }
  /// From the next run on, notes when each lane made each launch, inside loops too. Allocates the room for it.
  virtual void set_profiling(bool on) = 0;
  /// Of the last run while profiling, one entry per lane; valid until the next run.
  virtual std::vector<LaneEvents> events() const = 0;
};

/// Takes down a program, launch by launch, for one device. Ids are those of the plan's launch list. `waits`: for all
/// launches before; else the launch may run beside those before it, back to the last one that waits.
class Recorder {
 public:
  virtual ~Recorder() = default;
  /// The kernel must outlive what is recorded.
  virtual void launch(int id, const Kernel& kernel, std::span<const LaunchOperand> operands,
                      bool waits) = 0;
  virtual void copy(int id, const LaunchOperand& from, const LaunchOperand& to, int64_t bytes,
                    bool waits) = 0;
  /// Outside of loops and behind all other launches: a copy that may go on when the run is complete, until the next one
  /// comes to wait_for_copies_behind(). A device that has nothing of the kind makes it as any other.
  virtual void copy_behind(int id, const LaunchOperand& from, const LaunchOperand& to,
                           int64_t bytes) {
    copy(id, from, to, bytes, true);
  }
  /// Outside of loops: what follows comes behind copies that the run before has left. Where no place is told, all does.
  virtual void wait_for_copies_behind() {}
  /// Inside a loop: after each iteration, before `stop` is read, the bytes of `from` become those of `to`.
  virtual void carry(const LaunchOperand& from, const LaunchOperand& to, int64_t bytes) = 0;
  /// Inside a loop: `from` and `to`, as seen from outside of it, change places after each iteration, after `stop` is
  /// read. What the body reads or writes of them says so (LaunchOperand::exchanged_by). Behind the loop, after an odd number
  /// of iterations, the bytes of `from` become those of `to`.
  virtual void exchange(const LaunchOperand& from, const LaunchOperand& to, int64_t bytes) = 0;
  /// Inside a loop: behind it, the rows of `rows` (as seen from outside of it) whose iterations were not made are zeroed.
  virtual void clear_rows(const LaunchOperand& rows, int64_t row_bytes) = 0;
  virtual void begin_loop(int id, const LoopRange& range) = 0;
  virtual void end_loop() = 0;
  /// Nothing may be recorded afterwards.
  virtual std::unique_ptr<Replayable> finish() = 0;
};

}  // namespace fullbore
