#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "fullbore/device/device.h"
#include "fullbore/train/tensor_groups.h"

namespace fullbore {

/// A copy of a State for the thread that saves it: what belongs to one file lies together, in the file's
/// order and without gaps, so that it can be written from where it is.
class Snapshot {
 public:
  Snapshot() = default;
  /// Of `state`, which must outlive it; nothing is copied yet, and no memory met.
  Snapshot(const State& state, Compression compression);
  Snapshot(Snapshot&&) noexcept = default;
  Snapshot& operator=(Snapshot&&) noexcept = default;

  /// Copies the State as it is.
  void take();
  /// Has something been taken, and nothing written to the State since?
  bool is_current() const { return taken_ && state_->writes() == taken_at_; }
  /// What was taken last.
  const std::vector<TensorGroup>& groups() const { return groups_; }
  /// Meets the pages that the first take() left out, so that the loop does not wait for them at the
  /// second. Stops where `enough` becomes true.
  void meet(const std::atomic<bool>& enough);

 private:
  /// Of one group: where its tensors lie on the device, one part of the memory each.
  struct Copy {
    std::unique_ptr<HostMemory> memory;
    std::vector<SnapshotPart> parts;
  };
  const State* state_ = nullptr;
  std::shared_ptr<Device> device_;
  std::vector<TensorGroup> groups_;
  std::vector<Copy> copies_;  ///< one of each group
  bool taken_ = false;
  uint64_t taken_at_ = 0;  ///< writes of the State
};

}  // namespace fullbore
