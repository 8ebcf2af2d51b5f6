#pragma once
#include <set>
#include <string>
#include <vector>

#include "fullbore/ir/graph.h"
#include "fullbore/runtime/state.h"

namespace fullbore {

/// Parameters that State holds in 8 bits, as its entries say (passes/gemm/quantize_linears.h). A program that is bound to such
/// a State reads them so in its matmuls, whatever the model's code says (Program::compile).
std::set<std::string> quantized_parameters(const State& state);
/// The graph with its matmuls reading these so; the graph as it is for a State that has none.
Graph in_8_bits(const Graph& graph, const State& state);

/// State with these entries out of `from`: 8-bit weights and their scales are made of the f32 parameters that
/// they stand for, all else is copied, and what `from` lacks stays zero. NumericalError names a parameter that is
/// not finite.
State quantized_state(const State& from, std::vector<StateEntry> entries);

}  // namespace fullbore
