#pragma once
#include <memory>
#include <vector>

#include "fullbore/device/cuda/executor/launch_sink.h"

namespace fullbore::cuda {

/// A graph that the driver can launch as often as one likes.
class LaunchableGraph {
 public:
  LaunchableGraph(std::shared_ptr<Context> context, GraphHandle graph);
  ~LaunchableGraph();
  LaunchableGraph(const LaunchableGraph&) = delete;
  LaunchableGraph& operator=(const LaunchableGraph&) = delete;
  GraphExecHandle get() const { return handle_; }

 private:
  std::shared_ptr<Context> context_;
  GraphExecHandle handle_ = nullptr;
};

/// Makes nodes of a graph. Between two barriers they are side by side; the launches of one kernel follow one another.
class GraphSink final : public LaunchSink {
 public:
  explicit GraphSink(std::shared_ptr<Context> context);
  ~GraphSink() override;
  GraphSink(const GraphSink&) = delete;
  GraphSink& operator=(const GraphSink&) = delete;

  void barrier() override;
  void kernel(const LoadedKernel& kernel, std::span<const Address> operands) override;
  void copy(Address from, Address to, int64_t bytes) override;
  void clear(Address to, int64_t bytes) override;
  void set_number(Address to, int64_t value) override;
  int64_t number(Address at, int64_t bytes) override;

  bool is_empty() const { return !has_nodes_; }
  std::unique_ptr<LaunchableGraph> finish();

 private:
  void fill(Address to, unsigned value, unsigned element_bytes, int64_t elements);

  std::shared_ptr<Context> context_;
  GraphHandle graph_ = nullptr;
  ArgumentTable arguments_;
  std::vector<NodeHandle> before_;  ///< what comes next waits for these
  std::vector<NodeHandle> ends_;    ///< since the barrier
  bool has_nodes_ = false;
};

}  // namespace fullbore::cuda
