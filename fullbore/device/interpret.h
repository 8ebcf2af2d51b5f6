#pragma once
#include <functional>
#include <span>
#include <vector>

#include "fullbore/ir/graph.h"
#include "fullbore/ir/literal.h"
#include "fullbore/ir/op_def.h"

namespace fullbore {

/// The oracle: evaluates every node by its op's `reference`, in double precision, one after the
/// other. Slow and plain on purpose. Nothing is rounded to the graph's dtypes except where a value
/// becomes an integer or a boolean.
///
/// inputs   one literal per graph input, of its type
/// observe  called after each node of the outermost graph with its results
/// -> one literal per graph output
std::vector<Literal> interpret(
    const Graph& graph, std::span<const Literal> inputs,
    const std::function<void(const Node&, std::span<const Literal>)>& observe = {});

/// One node on given operands; `magnitudes` (optional) receives what ReferenceCall::magnitudes says.
std::vector<Literal> interpret_node(const Node& node, const std::vector<TensorType>& output_types,
                                    const std::vector<const Literal*>& inputs,
                                    std::vector<std::vector<double>>* magnitudes = nullptr);

}  // namespace fullbore
