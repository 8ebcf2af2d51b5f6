#pragma once
#include "fullbore/ir/graph.h"

namespace fullbore {

/// Are they alike in all that is printed of them (print.h), and in the numbers of their values too? Without printing them.
/// False for graphs that have a NaN among their attributes.
bool same_graph(const Graph& a, const Graph& b);

}  // namespace fullbore
