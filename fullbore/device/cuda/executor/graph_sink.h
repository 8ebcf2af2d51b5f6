#pragma once
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "fullbore/device/cuda/executor/launch_sink.h"
#include "fullbore/device/cuda/executor/memory_hazards.h"
#include "fullbore/device/cuda/executor/merged_code.h"

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

/// Makes nodes of a graph. Each follows those alone whose bytes it reads or overwrites, and those that read what it
/// overwrites: barriers say less, and are left out. The launches of one kernel follow one another. Small launches of one
/// code that need not follow one another become one (merged_code.h).
class GraphSink final : public LaunchSink {
 public:
  explicit GraphSink(std::shared_ptr<Context> context);
  ~GraphSink() override;
  GraphSink(const GraphSink&) = delete;
  GraphSink& operator=(const GraphSink&) = delete;

  void barrier() override {}
  void kernel(const LoadedKernel& kernel, std::span<const Address> operands) override;
  void copy(Address from, Address to, int64_t bytes) override;
  void clear(Address to, int64_t bytes) override;
  void set_number(Address to, int64_t value) override;
  int64_t number(Address at, int64_t bytes) override;

  bool is_empty() const { return nodes_.empty(); }
  std::unique_ptr<LaunchableGraph> finish();

 private:
  struct KernelCall {
    const LoadedKernel* kernel = nullptr;
    std::vector<Address> operands;
  };
  /// What the graph will have, one node or, of a kernel of several launches, several.
  struct Node {
    std::variant<KernelCall, CopyNode, FillNode> what;
    std::vector<int> follows;
  };

  /// Kernels of the same launches but for numbers of blocks and arguments.
  struct Kind {
    int number = -1;
    std::vector<MergedCode> codes;  ///< of each launch
    int most = 1;                   ///< kernels that may become one
  };

  void fill(Address to, unsigned value, unsigned element_bytes, int64_t elements);
  const Kind* kind_of(const Node& node);
  void load_merged(std::span<const std::vector<int>> groups);
  /// What comes behind a node follows the handle that these return.
  NodeHandle make_merged(const std::vector<int>& merged, const std::vector<NodeHandle>& before);
  NodeHandle add(const KernelNode& node, const std::vector<NodeHandle>& before,
                 const LoadedKernel& kernel, const Launch& launch);
  NodeHandle make(const KernelCall& call, const std::vector<NodeHandle>& before);
  NodeHandle make(const CopyNode& copy, const std::vector<NodeHandle>& before);
  NodeHandle make(const FillNode& fill, const std::vector<NodeHandle>& before);

  std::shared_ptr<Context> context_;
  GraphHandle graph_ = nullptr;
  ArgumentTable arguments_;
  MemoryHazards hazards_;
  std::vector<Node> nodes_;
  std::map<std::string, Kind> kinds_;
};

}  // namespace fullbore::cuda
