#pragma once
#include <optional>

#include "fullbore/ir/attributes.h"
#include "fullbore/ir/derived_weight.h"
#include "fullbore/ir/graph.h"
#include "fullbore/ir/target.h"
#include "fullbore/ir/tensor.h"

namespace fullbore {

/// The attributes of prepack.
Attributes packing_attributes(const Packing& packing);

/// Writes down how a derived weight follows from its parameter.
Tensor derive(const DerivedWeight& derived, Tensor parameter);
/// Of the tensor that it is before prepacking.
Tensor prepack(const Packing& packing, Tensor unpacked);

/// What weights may be derived from: a parameter itself, or a derived weight that is not prepacked. None for any other
/// input, and for frozen parameters of which the target keeps no copies.
std::optional<DerivedWeight> derivable(const Graph::Input& input, const Target& target);

/// The value that replaces an input of the graph, or none.
std::optional<Value> update_of(const Graph& graph, int input);

/// The graph without derived weights that nodes of `before`, from which it has been made, read and its own nodes do not;
/// and without what updates them.
Graph without_unread_derived_weights(const Graph& graph, const Graph& before);

/// The graph that computes all derived weights that nodes of `graph` read; null if there are none. Its inputs are the
/// parameters and the derived weights.
std::optional<Graph> deriving_graph(const Graph& graph);

}  // namespace fullbore
