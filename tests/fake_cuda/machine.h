#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/fake_cuda/fake_cuda.h"
#include "tests/support/ptx/machine.h"

/// The cards behind the fake driver: operations that wait for one another, and happen late.
namespace fullbore::fake_cuda {

/// Something that a stream was told to do.
struct Operation {
  std::function<void()> make;
  std::vector<std::shared_ptr<Operation>> before;
  bool is_made = false;
  int64_t made_ns = 0;  ///< when, by the steady clock
};
using OperationPointer = std::shared_ptr<Operation>;

struct Card {
  ptx::DeviceMemory memory;
  int64_t allocated_bytes = 0;
  std::map<uint64_t, int64_t> allocations;
  int retained = 0;
};

struct Graph;
struct Stream {
  OperationPointer last;
  std::shared_ptr<Graph> captured =
      {};  ///< what it is told becomes nodes of this; null: it happens
};

struct Event {
  OperationPointer recorded;
};

struct Function;
struct Module {
  Card* card = nullptr;
  ptx::Module code;
  bool is_hollow = false;  ///< machine code whose kernels do nothing (machine_code.h)
  std::map<std::string, std::unique_ptr<Function>> functions;
};
/// The compiler's.
struct Link {
  std::optional<std::string> ptx;
  std::string code;
};
struct Function {
  const ptx::Kernel* kernel = nullptr;
  Card* card = nullptr;
  bool is_hollow = false;
  int64_t most_dynamic_shared_bytes = 48 << 10;  ///< with its own, unless it is told otherwise
};

/// Of a conditional node.
struct ConditionalBody {
  uint64_t condition = 0;
  std::optional<uint32_t>
      at_launch;  ///< what the condition is when the graph is launched; else it is undefined
  std::shared_ptr<Graph> graph;
  std::shared_ptr<Graph*> handle;  ///< the driver's table of one body
};
struct GraphNode {
  std::string
      name;  ///< of its kernel, or "copy", "copy_in", "copy_out", "fill", "conditional", "graph"
  std::function<void()> make;
  std::vector<size_t> before = {};
  std::optional<ConditionalBody> body = {};
  bool is_lost = false;
  std::vector<uint64_t> memory = {};        ///< of the card, that a copy or a fill knows of
  std::shared_ptr<const Graph> child = {};  ///< a graph as one node, as it was then
};
struct Graph {
  uint64_t first = 0;     ///< its nodes are told by the numbers behind it
  Graph* root = nullptr;  ///< the graph that it is a body of, if any, however deep
  std::vector<GraphNode> nodes = {};
  std::shared_ptr<int> executables = std::make_shared<int>(0);  ///< made of it that exist
};
struct Condition {
  const Graph* graph = nullptr;  ///< that has its node
  const Graph* root = nullptr;
  std::optional<uint32_t> at_launch;
  bool has_node = false;
};
struct GraphExec {
  std::shared_ptr<Graph> nodes;  ///< as the next launch has them
  const Graph* from = nullptr;   ///< whose handles its nodes are told by
};

/// All of it. Its calls are made with the mutex held.
class Machine {
 public:
  FakeCuda told;
  std::recursive_mutex mutex;
  std::map<int, Card> cards;
  std::map<const void*, int64_t> pinned;  ///< by their first byte
  /// What handles stand for, until it is destroyed: a call that is made to fail leaves it here.
  std::map<const void*, std::shared_ptr<void>> owned;
  std::map<uint64_t, Condition> conditions;
  std::set<const GraphExec*> executables;
  int captures = 0;    ///< streams that are captured now
  int lost = 0;        ///< what every call returns since a card has failed
  uint64_t drawn = 0;  ///< state of random()

  Machine();

  template <class T>
  T* own(T value = {}) {
    const auto made = std::make_shared<T>(std::move(value));
    owned[made.get()] = made;
    return made.get();
  }

  /// What comes behind all that the stream was told before, and behind `also`. `name`: of the node, where it is captured.
  OperationPointer enqueue(Stream& stream, std::function<void()> make,
                           const OperationPointer& also = {}, const char* name = "captured");
  /// Has it happened, with all that it waits for.
  void complete(const OperationPointer& operation);
  void complete_all();
  Graph new_graph(Graph* root) { return {.first = ++graphs_made_ << 24, .root = root}; }
  /// In an order that its edges allow. What conditions are not given at its launch is noise.
  void make_graph(const Graph& graph);
  /// False: the graph that is being made has no such condition, or there is no graph.
  bool set_condition(uint64_t condition, uint32_t value);
  bool is_pinned(const void* memory, size_t bytes) const;
  /// A card has failed for good.
  void fail(int code, const std::string& what);
  uint64_t random();

 private:
  void make(Operation& operation);
  void begin_conditions(const Graph& graph);
  void make_nodes(const std::vector<GraphNode>& nodes);
  void make_some();
  void forget_made();

  std::vector<std::weak_ptr<Operation>> waiting_;
  uint64_t graphs_made_ = 0;
  std::map<uint64_t, uint32_t> condition_values_;  ///< of the graph that is being made
};

Machine& machine();

}  // namespace fullbore::fake_cuda
