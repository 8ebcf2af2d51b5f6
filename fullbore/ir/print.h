#pragma once
#include <string>
#include <string_view>

#include "fullbore/base/result.h"
#include "fullbore/ir/graph.h"

namespace fullbore {

/// The one text form of a graph, for dumps, tests and bug reports; parse(print(g)) prints the same.
///
///   graph "step" {
///     %0 = input "x" batch : f32[8,4]
///     %1 = tanh(%0) : f32[8,4]  # models/example.cpp:88 @ layers.0
///     %2, %3 = loop(%1) {carried=1, ...} : f32[8,4], f32[3,8,4] {
///       graph "body" { ... }
///     }
///     output "y" %2
///     output "x" %1 updates 0
///   }
std::string print(const Graph& graph);
std::string print_node(const Graph& graph, const Node& node);

/// Failure names the line and what was expected.
Result<Graph> parse_graph(std::string_view text);

/// Content hash of the printed form without locations and scopes.
uint64_t graph_hash(const Graph& graph);

}  // namespace fullbore
