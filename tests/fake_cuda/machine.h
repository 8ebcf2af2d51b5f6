#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
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

struct Stream {
  OperationPointer last;
};

struct Event {
  OperationPointer recorded;
};

struct Function;
struct Module {
  Card* card = nullptr;
  ptx::Module code;
  std::map<std::string, std::unique_ptr<Function>> functions;
};
struct Function {
  const ptx::Kernel* kernel = nullptr;
  Card* card = nullptr;
  int64_t most_dynamic_shared_bytes = 48 << 10;  ///< with its own, unless it is told otherwise
};

struct GraphNode {
  std::function<void()> make;
  std::vector<size_t> before;
};
struct Graph {
  std::vector<GraphNode> nodes;
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
  int lost = 0;        ///< what every call returns since a card has failed
  uint64_t drawn = 0;  ///< state of random()

  Machine();

  template <class T>
  T* own(T value = {}) {
    const auto made = std::make_shared<T>(std::move(value));
    owned[made.get()] = made;
    return made.get();
  }

  /// What comes behind all that the stream was told before, and behind `also`.
  OperationPointer enqueue(Stream& stream, std::function<void()> make,
                           const OperationPointer& also = {});
  /// Has it happened, with all that it waits for.
  void complete(const OperationPointer& operation);
  void complete_all();
  /// In an order that its edges allow.
  void make_graph(const std::vector<GraphNode>& nodes);
  bool is_pinned(const void* memory, size_t bytes) const;
  /// A card has failed for good.
  void fail(int code, const std::string& what);
  uint64_t random();

 private:
  void make(Operation& operation);
  void make_some();
  void forget_made();

  std::vector<std::weak_ptr<Operation>> waiting_;
};

Machine& machine();

}  // namespace fullbore::fake_cuda
