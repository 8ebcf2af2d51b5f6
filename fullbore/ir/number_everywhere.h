#pragma once
#include <optional>

#include "fullbore/ir/graph.h"

namespace fullbore {

/// The number that every element of a value is, if its producers say so. 0 and -0 are two numbers.
std::optional<double> number_everywhere(const Graph& graph, Value value);

}  // namespace fullbore
