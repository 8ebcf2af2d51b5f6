#pragma once
#include <memory>
#include <span>
#include <vector>

#include "fullbore/device/cuda/executor/graph_maker.h"
#include "fullbore/device/cuda/executor/launchable_graph.h"
#include "fullbore/device/cuda/executor/memory_hazards.h"

namespace fullbore::cuda {

/// Makes nodes of a graph. Each follows those alone whose bytes it reads or overwrites, and those that read what it
/// overwrites, wherever both may be (Place): barriers say less, and are left out. The launches of one kernel follow one
/// another. A conditional node reads and writes whatever nodes of its body do, which are ordered among themselves alike.
class GraphSink final : public LaunchSink {
 public:
  GraphSink(std::shared_ptr<Context> context, LaunchKinds& kinds);

  void barrier() override {}
  void kernel(const LoadedKernel& kernel, std::span<const Place> operands) override;
  void copy(const Place& from, const Place& to, int64_t bytes) override;
  void clear(const Place& to, int64_t bytes) override;
  void set_number(const Place& to, int64_t value) override;
  int64_t number(const Place& at, int64_t bytes) override;
  void control(const ControlLaunch& launch) override;
  void begin_conditional(const ControlLaunch& decision) override;
  void end_conditional() override;
  void graph(LaunchableGraph& graph, int first, int last) override;

  bool is_empty() const { return contents_.nodes.empty(); }
  /// Is anything of it in another place in other iterations?
  bool moves() const { return moves_; }
  std::unique_ptr<LaunchableGraph> finish(bool moves);

 private:
  /// A level that gets more nodes.
  struct OpenLevel {
    int number = 0;
    MemoryHazards hazards = {};
    std::vector<MemoryAccess> accesses = {};  ///< of all of its nodes
  };

  /// The next node will.
  void touch(const Place& place, int64_t bytes, bool is_written);
  void touch(const ControlLaunch& launch);
  void add(NodeContent content);

  std::shared_ptr<Context> context_;
  LaunchKinds& kinds_;
  GraphContents contents_;
  std::vector<GraphLevel> levels_;      ///< the graph's own first
  std::vector<OpenLevel> open_;         ///< the same, and bodies within one another
  std::vector<MemoryAccess> accesses_;  ///< of the node that comes next
  bool moves_ = false;
};

}  // namespace fullbore::cuda
