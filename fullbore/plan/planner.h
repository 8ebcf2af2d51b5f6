#pragma once
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "fullbore/ir/loop.h"
#include "fullbore/plan/memory.h"
#include "fullbore/plan/plan.h"
#include "fullbore/plan/stacked_rows.h"

namespace fullbore {

/// Turns one graph into the launches, buffers and lifetimes of a Plan. Used by make_plan alone.
///
/// Time is counted in launches, a loop's body once: its values live and die within an iteration, so the
/// intervals of one iteration serve all, except that what the body reads from outside, what it carries
/// and what it stacks live from the loop's first launch to its last.
class Planner {
 public:
  Planner(Plan& plan, Compiler& compiler, const PlanOptions& options)
      : plan_(plan), compiler_(compiler), options_(options) {}

  void plan_graph();

 private:
  /// One graph being planned: the whole one, or a loop's body.
  struct Level {
    /// `around`, `node`: what the graph is the body of; null and -1: nothing.
    explicit Level(const Graph& graph, const Level* around = nullptr, int node = -1);
    const Graph& graph;
    BodyScope scope;
    std::vector<Value> root;      ///< per value: where its bytes come from, through identity ops
    std::vector<int> last_read;   ///< per root: last node that reads it; node count if an output
    std::vector<int> buffer;      ///< per root: index into Plan::buffers, -1 until assigned
    std::vector<bool> fixed;      ///< per root: bytes belong to someone else: never overwritten
    std::map<Value, int> target;  ///< roots that should be made in a given buffer
    std::vector<std::shared_ptr<Kernel>> kernels;  ///< per node, null where none is needed
    std::vector<int> kernel_index;
    std::vector<PlannedLaunch> launches;

    Value root_of(Value value) const { return root[static_cast<size_t>(value.id)]; }
    int buffer_of(Value value) const { return buffer[static_cast<size_t>(root_of(value).id)]; }
    int last_read_of(Value value) const {
      return last_read[static_cast<size_t>(root_of(value).id)];
    }
    void bind(Value value, int buffer_index, bool is_fixed);
  };

  void compile_kernels(Level& level);
  void plan_nodes(Level& level);
  void plan_kernel(Level& level, int index);
  void plan_constant(Level& level, const Node& node);
  void plan_loop(Level& level, int index);
  int loop_carried_buffer(Level& level, int index, const LoopShape& shape, const Level& body,
                          int carried);
  bool carries_state_in_place(const Level& level, int index, const LoopShape& shape,
                              const Level& body, int carried) const;
  void plan_loop_outputs(Level& body, const LoopShape& shape, LoopPlan& loop,
                         const std::vector<int>& carried, const std::vector<int>& stacked);
  void plan_carries(Level& body, const LoopShape& shape, LoopPlan& loop,
                    const std::vector<int>& carried, int first_of_body);
  void assign_results(Level& level);
  void finish_results(Level& level);

  // State in the host's memory (plan_host_state.cpp). Its copies take no time of their own: one to the device is made at the
  // moment of the launch behind it, one to the host at that of the launch before it.
  struct HostEntry {
    int input = -1;   ///< of the graph
    int host = -1;    ///< buffer of State
    int staged = -1;  ///< buffer of the arena, which is the value's
    bool is_read = false, is_written = false;
  };
  struct HostCopy {
    int from = -1, to = -1;
    size_t before = 0;       ///< the launch of the whole graph that it stands before
    bool is_last = false;    ///< behind all others there
    bool is_behind = false;  ///< beside the next replay
  };
  void stage_host_state(Level& level);
  HostEntry* host_entry(int input);
  bool is_whole(const Level& level) const { return &level.graph == &plan_.graph; }
  void read_from_host(const Level& level, const std::vector<Value>& values);
  void write_to_host(const Level& level, const Node& node);
  void finish_host_state(Level& level);
  void note_launches(const Level& level, int begin);
  int64_t place_with_host_copies();
  void spread_host_copies(int64_t allowed_bytes, int64_t share);
  void choose_first_waiting(const std::vector<int64_t>& room);
  void insert_host_copies();

  /// May `value`'s producer write straight over `previous` (a value of the same level that lives in
  /// a fixed buffer), because nobody reads it afterwards?
  bool may_replace(const Level& level, Value previous, Value value) const;
  int reusable_input(const Level& level, int index, size_t output) const;
  bool delays_others(const Level& level, Value root, int index, int64_t bytes) const;
  bool made_by_kernel(const Level& level, Value value) const;
  bool stacked_by_loop(const Level& level, Value value) const;

  int new_buffer(Space space, int64_t bytes, std::string what);
  int new_slice(int base, int64_t stride, std::string what);
  void touch(int buffer, int time);
  void touch_inputs(Level& level, const Node& node);
  PlannedLaunch copy_launch(int from, int to);
  int64_t aligned(int64_t bytes) const { return aligned_bytes(bytes, options_.alignment); }
  int64_t place(Space space, int base);
  void place_all();

  Plan& plan_;
  Compiler& compiler_;
  const PlanOptions& options_;
  /// Where working memory is taken from: the arena, or what a parallel loop's thread groups have each.
  Space working_space() const { return memory_ < 0 ? Space::arena : Space::thread_group; }
  int thread_group_count(const LoopShape& shape) const;

  std::vector<Lifetime> lifetimes_;  ///< per buffer
  int clock_ = 0;
  int memory_ = -1;                 ///< of the thread groups whose loop is being planned, or -1
  int workers_ = options_.workers;  ///< of a thread group, or of the thread pool

  std::vector<HostEntry> host_entries_;
  std::vector<HostCopy> host_copies_;
  std::vector<int> begins_;   ///< of the whole graph's launches, on the clock
  size_t first_waiting_ = 0;  ///< of these: behind copies that the replay before has left
};

}  // namespace fullbore
