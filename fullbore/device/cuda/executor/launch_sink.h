#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fullbore/device/address.h"
#include "fullbore/device/cuda/driver/context.h"
#include "fullbore/device/cuda/executor/compiled_node.h"

namespace fullbore::cuda {

/// A launch whose code is loaded.
struct LoadedLaunch {
  const Launch* launch = nullptr;
  FunctionHandle function = nullptr;
};
struct LoadedKernel {
  const CompiledNode* node = nullptr;
  std::vector<LoadedLaunch> launches;
};

/// The arguments of a launch as the driver takes them: pointers to their values.
class ArgumentTable {
 public:
  /// Valid until the next call.
  void** of(const Launch& launch, std::span<const Address> operands);

 private:
  std::vector<uint64_t> addresses_;
  std::vector<void*> pointers_;
};

/// Takes what a walk over a recorded program meets: a graph that is built once, or a stream that it happens in.
class LaunchSink {
 public:
  virtual ~LaunchSink() = default;
  /// What follows comes behind all before; without, it may happen beside what came since the last barrier.
  virtual void barrier() = 0;
  virtual void kernel(const LoadedKernel& kernel, std::span<const Address> operands) = 0;
  virtual void copy(Address from, Address to, int64_t bytes) = 0;
  virtual void clear(Address to, int64_t bytes) = 0;
  virtual void set_number(Address to, int64_t value) = 0;
  /// The i64 or, with `bytes` 1, the bool there, behind all before.
  virtual int64_t number(Address at, int64_t bytes) = 0;
  /// Around a launch of the launch list.
  virtual void begin_launch(int id) { (void)id; }
  virtual void end_launch() {}
};

/// Throws what the launch of a kernel has met, naming the node: DeviceError, MemoryError.
[[noreturn]] void throw_launch_failure(const char* call, int code, const LoadedKernel& kernel,
                                       const Launch& launch);

}  // namespace fullbore::cuda
