#pragma once
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "fullbore/ir/graph.h"

namespace fullbore {

/// The index space of a fused body: `elements` points, in rows of `width` if something is reduced.
///
/// Values may have several shapes, as long as their axes can all be seen as products of one list of
/// smaller axes. `strides` holds the products of trailing extents of all shapes; they must divide
/// one another.
struct FusionSpace {
  int64_t elements = 0;
  int64_t width = 0;               ///< of a row; 0: nothing is reduced
  Shape reduced_shape = {};        ///< of what is reduced
  std::vector<int64_t> axes = {};  ///< along which
  /// The axes are the leading ones: columns are reduced. They end a group: a kernel walks columns in
  /// another order than rows, so that nothing else is made on the way.
  bool columns = false;
  std::set<int64_t> strides = {};
  int nodes = 0;
  int reductions = 0;

  int64_t rows() const { return width > 0 ? elements / width : 0; }
  /// Is a value of so many elements one number per row?
  bool is_row(int64_t count) const { return width > 0 && count == rows(); }
};

/// How a consumer's operand is made of the value of another node.
struct FusionEdge {
  Value from;                ///< the value that is read, through reshapes
  bool repeated = false;     ///< by way of a broadcast_to...
  Shape repeated_from = {};  ///< ...from this shape...
  Shape repeated_to = {};    ///< ...to this
};
FusionEdge fusion_edge(const Graph& graph, Value operand);

/// The space of one node: elementwise, or a reduction of trailing or of leading axes. Nothing if it
/// cannot be fused.
std::optional<FusionSpace> fusion_space(const Graph& graph, const Node& node);

/// The common space of two groups. Nothing if they do not fit into one.
std::optional<FusionSpace> fit_together(const FusionSpace& producer, const FusionSpace& consumer);
/// Likewise, and nothing if one kernel of both would be too large or leave workers idle.
std::optional<FusionSpace> join(const FusionSpace& producer, const FusionSpace& consumer);

/// Can an operand be evaluated at the points of the space that are made of the value it comes from?
/// Adds the shapes on the way to the space.
bool admit(FusionSpace& space, const Graph& graph, Value operand);

/// Has the shape as many elements as the space, along axes that are products of the space's?
bool fits(const FusionSpace& space, const Shape& shape);

}  // namespace fullbore
