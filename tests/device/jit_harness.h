#pragma once
#include <memory>
#include <string>
#include <vector>

#include "fullbore/device/cpu/codegen/jit_kernel.h"
#include "fullbore/ir/graph.h"
#include "fullbore/ir/literal.h"

namespace fullbore {

/// Runs a kernel on literals in exactly fitting memory, split in as many calls as `parts`; returns
/// the outputs as stored. `results` has a type per output.
std::vector<Literal> run_kernel(const Kernel& kernel, const std::vector<Literal>& inputs,
                                const std::vector<TensorType>& results, int parts = 1);

/// "" or the first element of the node's outputs that is further from the oracle than the op's bound
/// allows: ulps * eps * |y|, plus the accumulator's eps * magnitude for sums, plus the smallest
/// denormal. `reals`, `magnitudes`: of interpret_node.
std::string compare_with_oracle(const Node& node, const std::vector<Literal>& expected,
                                const std::vector<std::vector<double>>& magnitudes,
                                const std::vector<Literal>& found, double extra_ulps = 0);

}  // namespace fullbore
