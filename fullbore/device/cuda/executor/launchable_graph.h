#pragma once
#include <memory>
#include <span>
#include <vector>

#include "fullbore/device/cuda/executor/graph_nodes.h"
#include "fullbore/device/cuda/executor/launch_sink.h"

namespace fullbore::cuda {

/// A graph as it is made of nodes.
class OwnedGraph {
 public:
  explicit OwnedGraph(std::shared_ptr<Context> context);
  /// One that somebody else has made.
  OwnedGraph(std::shared_ptr<Context> context, GraphHandle handle)
      : context_(std::move(context)), handle_(handle) {}
  ~OwnedGraph();
  OwnedGraph(const OwnedGraph&) = delete;
  OwnedGraph& operator=(const OwnedGraph&) = delete;
  GraphHandle get() const { return handle_; }

 private:
  std::shared_ptr<Context> context_;
  GraphHandle handle_ = nullptr;
};

/// What a graph was made of.
struct GraphContents {
  /// A node of the driver's, or of kernels of several launches one for each of them.
  struct Made {
    std::vector<int> members;          ///< of `nodes`; several have become one
    const LaunchKind* kind = nullptr;  ///< of several
    std::vector<NodeHandle> handles;   ///< what a library makes is the last
    bool is_changed = false;
  };
  std::unique_ptr<OwnedGraph> graph;
  std::vector<NodeContent> nodes;  ///< in the order in which the program has them
  std::vector<Made> made;
  bool has_conditional_nodes = false;
};

/// A graph that the driver can launch as often as one likes. One that moves can be told its launches again, in their order,
/// before each launch(): the nodes of those whose places are others get their new arguments, and what was launched before
/// keeps those that it had. One that has conditional nodes does not move.
class LaunchableGraph final : public LaunchSink {
 public:
  /// `kinds` outlive this where it moves; else only the graph is kept.
  LaunchableGraph(std::shared_ptr<Context> context, GraphContents contents, bool moves);
  ~LaunchableGraph() override;
  LaunchableGraph(const LaunchableGraph&) = delete;
  LaunchableGraph& operator=(const LaunchableGraph&) = delete;

  /// What follows are its launches, from the first on.
  LaunchSink& begin();
  void launch() { launch(context_->main()); }
  void launch(StreamHandle stream);

  void barrier() override {}
  void kernel(const LoadedKernel& kernel, std::span<const Place> operands) override;
  void copy(const Place& from, const Place& to, int64_t bytes) override;
  void clear(const Place& to, int64_t bytes) override;
  void set_number(const Place& to, int64_t value) override;
  int64_t number(const Place& at, int64_t bytes) override;
  void graph(LaunchableGraph& graph, int first, int last) override;

 private:
  NodeContent& next();
  void set_fill(const FillNode& fill);
  void set(const Driver& driver, const GraphContents::Made& made);

  std::shared_ptr<Context> context_;
  GraphContents contents_;
  std::vector<size_t> made_of_;  ///< per node: index into contents_.made
  GraphExecHandle handle_ = nullptr;
  KernelNodes kernel_nodes_;
  size_t next_ = 0;
  std::vector<size_t> changed_;  ///< of contents_.made
  std::vector<const KernelCall*> calls_;
};

}  // namespace fullbore::cuda
