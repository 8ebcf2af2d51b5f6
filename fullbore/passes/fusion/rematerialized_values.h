#pragma once
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "fullbore/ir/graph.h"
#include "fullbore/ir/target.h"
#include "fullbore/passes/fusion/fusion_groups.h"

namespace fullbore {

/// Values that every kernel which needs them makes by itself, so that they never reach memory: what a few
/// cheap elementwise ops make of values that the kernel reads anyway, or reads instead. A forward pass does
/// not write the product of what it writes too, and the gradient does not read it; a cotangent is not
/// multiplied by four weights for four readers. (Kernels wait for memory, not for such arithmetic; what is
/// recomputed to save memory is another matter, passes/memory/rematerialize.h.)
///
/// No kernel reads more bytes than before, but for numbers of rows and columns, and no value has to live longer unless
/// one of as many bytes need not. In low precision sums and differences are not rematerialized from what memory keeps
/// rounded.
class RematerializedValues {
 public:
  RematerializedValues(const Graph& graph, const FusionGroups& groups, const Target& target);

  /// Do kernels that need the value make it by themselves? Also if but one kernel does, and others may have to on the
  /// way to what they rematerialize.
  bool contains(Value value) const;
  /// Is the value rematerialized, or made of one that is by reshapes and repetitions?
  bool contains_source_of(Value value) const;

 private:
  /// What a group reads from memory, and what it takes to make rematerialized values there.
  struct Reading {
    std::set<Value> values;  ///< before reshapes
    std::set<Value> rematerialized;
    bool rounded = false;  ///< are sums rematerialized of values that memory keeps rounded?
  };

  void consider(const Node& node, int group);
  /// Nothing if a group cannot make what it then has to.
  std::optional<Reading> reading(int group) const;
  bool collect(Value operand, int group, bool for_sum, FusionSpace& space, Reading& reading) const;
  double bytes(Value value) const;
  double new_bytes(const Reading& before, const Reading& after) const;

  const Graph& graph_;
  const FusionGroups& groups_;
  bool low_precision_;
  std::set<Value> rematerialized_;
};

}  // namespace fullbore
