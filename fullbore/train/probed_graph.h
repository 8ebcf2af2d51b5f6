#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "fullbore/ir/graph.h"
#include "fullbore/ir/loop.h"
#include "fullbore/ir/tensor.h"
#include "fullbore/runtime/program.h"

namespace fullbore {

/// How bad the worst element of a value is.
enum class Health : uint8_t { kFinite, kInfinite, kNaN };

/// One graph of a step, or the body of one of its loops, and where the probes of its values are.
struct ProbedLevel {
  const Graph* graph = nullptr;
  const ProbedLevel* parent = nullptr;  ///< null: the step
  int node = -1;                        ///< of the parent: the loop
  int first = 0;                        ///< probe of the parent that the level's first one is
  int executed = -1;        ///< probe that is 1 where an iteration was executed; -1: all are
  std::vector<int> probes;  ///< per value; -1: none
  std::map<int, std::unique_ptr<ProbedLevel>> loops;  ///< by node

  const Node& loop() const { return parent->graph->nodes()[static_cast<size_t>(node)]; }
  int64_t iterations() const { return LoopShape(loop()).iterations; }
};

/// A value of a level in one iteration of each loop around it, the outermost first.
struct ProbedValue {
  const ProbedLevel* level = nullptr;
  std::vector<int64_t> iterations;
  Value value;
};

/// The nodes of a graph and of its loops, with the largest magnitude of every floating value for a result: inside of
/// loops a number for each iteration. What the graph updates, this does not.
class ProbedGraph {
 public:
  /// `graph` must outlive this.
  explicit ProbedGraph(const Graph& graph);
  ~ProbedGraph();

  Graph take() { return builder_.take(); }
  const ProbedLevel& top() const { return top_; }
  /// After a run of a program of the graph taken.
  Health health(const Program& program, const ProbedValue& value) const;
  /// Was the iteration that the value is of executed?
  bool was_executed(const Program& program, const ProbedValue& value) const;

 private:
  double read(const Program& program, const ProbedValue& value, int probe) const;

  GraphBuilder builder_;
  ProbedLevel top_;
};

/// The graph with the members of its fused nodes in their place, also within loops: each value that a kernel makes in
/// registers is one of the graph's.
Graph with_members_apart(const Graph& graph);

}  // namespace fullbore
