#pragma once
#include <vector>

#include "fullbore/ir/graph.h"
#include "fullbore/ir/target.h"
#include "fullbore/passes/precision/island_values.h"
#include "fullbore/passes/precision/softmax_values.h"

namespace fullbore {

/// Which values of a graph keep the precision that they have:
///
/// - what goes into State or a result, or into the next iteration of the loop whose body the graph is, with nothing but
///   elementwise arithmetic and movement on the way;
/// - what exponentials and differences of a softmax depend on (softmax_values.h);
/// - what islands of f32 read (island_values.h), with nothing but elementwise arithmetic and movement on the way.
class PinnedValues {
 public:
  /// Of a whole step, all of whose outputs count.
  explicit PinnedValues(const Graph& graph);

  bool operator[](Value value) const { return kept_[static_cast<size_t>(value.id)]; }
  /// Those that are kept because of a softmax, or because an island reads them as they are.
  bool is_pinned(Value value) const {
    const auto place = static_cast<size_t>(value.id);
    return softmax_.pinned[place] || islands_.read[place];
  }

  /// Of the body of one of the graph's nodes. What a loop carries counts, and what is kept of a parallel loop's results,
  /// which stand for those of a step without it. Of other bodies nothing does.
  PinnedValues of_body(const Node& node) const;

 private:
  PinnedValues(const Graph& graph, const std::vector<bool>& outputs, SoftmaxValues softmax,
               IslandValues islands);

  SoftmaxValues softmax_;
  IslandValues islands_;
  std::vector<bool> kept_;
};

/// Is the node one of those that the target wants in f32, of an island of f32, or the optimiser's, whose rates and moments
/// are never low?
bool stays_f32(const Node& node, const Target& target);
/// Likewise, of one value: through loops, fused nodes and movement to the node that makes it.
bool makes_f32(const Graph& graph, Value value, const Target& target);

}  // namespace fullbore
