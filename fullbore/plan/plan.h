#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fullbore/device/kernel.h"
#include "fullbore/device/peaks.h"
#include "fullbore/ir/graph.h"

namespace fullbore {

/// Where a buffer's bytes lie.
enum class Space : uint8_t {
  arena,     ///< at `offset` of the program's one arena; live from its first write to its last read
  state,     ///< State slot of graph input `index`
  batch,     ///< the caller's memory for graph input `index`
  constant,  ///< at `offset` of the constants, filled at compile time
  result,    ///< at `offset` of the results: outputs that are not State, kept until the next replay
  slice,     ///< row of another buffer at a loop's index: base pointer + index * stride
  thread_group  ///< at `offset` of the memory of a thread group in `base`; live from its first write to its last read
};

struct Buffer {
  Space space = Space::arena;
  int64_t bytes = 0;
  int64_t offset = 0;
  int index = -1;      ///< input index (state, batch)
  int base = -1;       ///< of a slice: the buffer it is a row of
  int64_t stride = 0;  ///< of a slice: bytes per row; of the memory of thread groups: bytes of each
  /// In the arena: memory for so many thread groups of a parallel loop, one behind another.
  int thread_groups = 0;
  bool in_host = false;  ///< of State: in the host's memory, where copies alone find it
  /// In the arena or a thread group's memory: the launches, in order, a loop's body once, from the first to the last of which
  /// the bytes are this buffer's.
  int first = 0;
  int last = 0;
  int again =
      -1;  ///< and of the next replay those up to this one: a copy to the host may still read it
  std::string what;  ///< for people: "%12 tanh layers.0"
};

struct PlannedLaunch;

/// A loop as the runtime walks it.
struct LoopPlan {
  int64_t iterations = 0;
  bool reverse = false;
  int count = -1;           ///< buffer of the i64 iteration count, or -1
  int stop = -1;            ///< buffer of the body's stop flag, or -1
  int index = -1;           ///< buffer that receives the iteration's index
  int executed = -1;        ///< buffer that receives the number of executed iterations, or -1
  std::vector<int> slices;  ///< buffers of Space::slice to be moved with the index
  /// After each iteration the bytes of `from` become those of `to` (a carried value that could not be
  /// computed in place). Where they are `exchanged`, both are the loop's from its begin to its end, and change places
  /// instead of being copied: in the body a buffer's number says its role, its bytes are those of either by the parity of
  /// the iterations made. Behind the loop the value is in `to`.
  struct Carry {
    int from = -1;
    int to = -1;
    bool exchanged = false;
  };
  std::vector<Carry> carries;
  /// Stacked buffers whose rows are zeroed, behind the loop, where iterations were not made: of those alone that
  /// somebody reads beyond the iterations made (stacked_rows.h).
  std::vector<int> cleared;
  /// Buffer of the thread groups' memory, or -1. Thread groups of workers make iterations side by side: the first thread group the first iteration,
  /// and so on, and all go on as far behind as there are thread groups.
  int memory = -1;
  std::vector<PlannedLaunch> body;
};

/// One entry of the launch list.
struct PlannedLaunch {
  enum class Kind : uint8_t { kernel, copy, loop };
  Kind kind = Kind::kernel;
  int node = -1;             ///< of the graph at this level, for profiles; -1 for copies
  int kernel = -1;           ///< index into Plan::kernels
  std::vector<int> buffers;  ///< kernel: inputs, outputs, scratch. copy: source, destination
  bool waits =
      true;  ///< for all launches before it; else it may run beside them (concurrent_launches.h)
  /// Of a copy to the host, at the end of the list: it may go on beside the next replay, up to Plan::first_waiting.
  bool behind = false;
  std::shared_ptr<LoopPlan> loop;
};

/// A compiled program as data: what is launched, in which order, on which bytes. Everything about
/// memory is known here, before a byte is allocated.
struct Plan {
  Graph graph;  ///< after all passes
  std::vector<std::shared_ptr<Kernel>> kernels;
  std::vector<Buffer> buffers;
  std::vector<PlannedLaunch> launches;
  size_t first_waiting = 0;         ///< the launch that comes behind copies of the replay before
  std::vector<int> result_buffers;  ///< per graph output: buffer, or -1 if State
  std::vector<char> constants;      ///< contents of Space::constant

  int64_t alignment = 64;  ///< of every buffer
  int64_t arena_bytes = 0;
  int64_t state_bytes = 0;    ///< in the device's memory; derived weights left out
  int64_t host_bytes = 0;     ///< of State in the host's memory
  int64_t derived_bytes = 0;  ///< of derived weights, beside State
  int64_t batch_bytes = 0;
  int64_t result_bytes = 0;
  /// Arena, State, copies, batch, constants and results together: the planned peak of the device's memory.
  int64_t peak_bytes() const {
    return arena_bytes + state_bytes + derived_bytes + batch_bytes + result_bytes +
           static_cast<int64_t>(constants.size());
  }
  double flops = 0;
  double bytes_moved = 0;
};

/// Thread groups that make a loop's iterations side by side; 1 if it is not parallel.
inline int thread_group_count(const Plan& plan, const LoopPlan& loop) {
  return loop.memory < 0 ? 1 : plan.buffers[static_cast<size_t>(loop.memory)].thread_groups;
}
/// Of the loop with the most of them.
int most_thread_groups(const Plan& plan);
/// The planned peak of programs that run by turns on one State and in one arena: the largest of each,
/// every copy once, and everybody's batch, results and constants.
int64_t shared_peak_bytes(std::span<const Plan* const> plans);

struct PlanOptions {
  int workers = 1;  ///< of the device, as what follows (DeviceFacts)
  int64_t alignment = 64;
  int64_t group_alignment = 4096;
  /// Give every value bytes of its own: the reference that reuse is tested against.
  bool reuse_memory = true;
  /// Where launches overlap (device/overlapping_launches.h): bytes of small values are reused late, which takes more of them.
  bool late_reuse = true;
  /// Thread groups of a parallel loop, at most; 0: as many as there are workers. Fewer take less memory and longer, to the
  /// same bits.
  int thread_groups = 0;
  /// State of role `moment` lies in the host's memory (DeviceFacts). It has a place in the arena from a copy ahead of its
  /// first reader to one behind its writer; both lie as far from these as memory allows that something else takes at
  /// another time.
  bool moments_in_host = false;
};

/// Chooses kernels, order and bytes for a graph that has been through the passes.
Plan make_plan(Graph graph, Compiler& compiler, const PlanOptions& options);

/// Of contractions of such operands; f16 ones are widened to f32 before they are multiplied. `tf32`: f32 ones may be
/// rounded to that.
double peak_flops(DType operands, const MachinePeaks& peaks, bool tf32 = false);
/// Sum over launches of max(flops / peak, bytes / bandwidth): no replay can be faster. Copies from the host are beside it. Those
/// to it are behind all that is launched before the first of them, and beside what the next replay launches before it
/// waits for them. The longest of the three.
double roofline_seconds(const Plan& plan, const MachinePeaks& peaks);
/// The same with copies between both memories, of a step that takes `seconds` without.
double seconds_with_host_copies(const Plan& plan, const MachinePeaks& peaks, double seconds);
/// Which end of a copy is State in the host's memory; none of other launches.
enum class HostEnd : uint8_t { none, from, to };
HostEnd host_end(const Plan& plan, const PlannedLaunch& launch);
/// "", " from host", " to host".
std::string_view host_end_text(const Plan& plan, const PlannedLaunch& launch);
/// Bytes that a replay copies from the host's State, and back to it.
struct HostTraffic {
  int64_t read = 0;
  int64_t written = 0;
};
HostTraffic host_traffic(const Plan& plan);
/// One node's part of it: 0 for what launches nothing; of a loop, its iterations times its body's.
double roofline_seconds(const Graph& graph, const Node& node, const MachinePeaks& peaks);

std::string_view space_name(Space space);  ///< "arena", "state", ...

/// Every launch and buffer, in order; report.h sums them up.
std::string plan_text(const Plan& plan);

}  // namespace fullbore
