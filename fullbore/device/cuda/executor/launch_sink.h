#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fullbore/device/address.h"
#include "fullbore/device/cuda/driver/context.h"
#include "fullbore/device/cuda/driver/encoded_map.h"
#include "fullbore/device/cuda/executor/compiled_node.h"

namespace fullbore::cuda {

class LaunchableGraph;

/// A launch whose code is loaded.
struct LoadedLaunch {
  const Launch* launch = nullptr;
  FunctionHandle function = nullptr;
};
struct LoadedKernel {
  const CompiledNode* node = nullptr;
  std::vector<LoadedLaunch> launches;  ///< before what a library makes of the node

  bool is_empty() const { return node->nodes() == 0; }
};

/// Where something is in this iteration of the loops around, and where it may be in others: behind addresses from `least`
/// to `most` bytes away, and as far from each of `others`, which a loop exchanges it with.
struct Place {
  Address address;
  int64_t least = 0, most = 0;
  std::vector<Address> others = {};

  bool moves() const { return least != 0 || most != 0 || !others.empty(); }
};
/// What lies behind it.
Place behind(Place place, int64_t bytes);

/// A launch of a kernel that a loop needs (conditional_loops.h).
struct ControlLaunch {
  struct Use {
    int64_t bytes = 0;
    bool is_written = false;
  };
  Launch launch;
  FunctionHandle function = nullptr;
  std::vector<Place> operands = {};
  std::vector<Use> uses = {};  ///< of each operand
};

/// The arguments of a launch as the driver takes them: pointers to their values.
class ArgumentTable {
 public:
  /// Valid until the next call. DeviceError: an operand cannot be told by a tensor map.
  void** of(const Context& context, const Launch& launch, std::span<const Place> operands);

 private:
  std::vector<EncodedMap> maps_;
  std::vector<uint64_t> addresses_;
  std::vector<void*> pointers_;
};

/// Takes what a walk over a recorded program meets: a graph that is built once, or a stream that it happens in.
class LaunchSink {
 public:
  virtual ~LaunchSink() = default;
  /// What follows comes behind all before; without, it may happen beside what came since the last barrier.
  virtual void barrier() = 0;
  virtual void kernel(const LoadedKernel& kernel, std::span<const Place> operands) = 0;
  virtual void copy(const Place& from, const Place& to, int64_t bytes) = 0;
  virtual void clear(const Place& to, int64_t bytes) = 0;
  virtual void set_number(const Place& to, int64_t value) = 0;
  /// The i64 or, with `bytes` 1, the bool there, behind all before.
  virtual int64_t number(const Place& at, int64_t bytes) = 0;
  /// Are numbers read as launches are made? Where they are not, loops whose counts depend on data are conditional nodes.
  virtual bool reads_numbers() const { return false; }
  // Of conditional nodes, where numbers are not read.
  virtual void control(const ControlLaunch& launch);
  /// What follows until end_conditional() is made if `decision` says so.
  virtual void begin_conditional(const ControlLaunch& decision);
  virtual void end_conditional();
  /// A graph whose nodes are those of launches [first, last] of the launch list.
  virtual void graph(LaunchableGraph& graph, int first, int last) = 0;
  /// What follows comes behind copies that the run before has left. Of graphs, which are launched behind it, none is told.
  virtual void wait_for_copies_behind() {}
  /// Around a launch of the launch list.
  virtual void begin_launch(int id) { (void)id; }
  virtual void end_launch() {}
};

/// Throws what the launch of a kernel has met, naming the node: DeviceError, MemoryError.
[[noreturn]] void throw_launch_failure(const char* call, int code, const LoadedKernel& kernel,
                                       const Launch& launch);

}  // namespace fullbore::cuda
