#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fullbore/ir/graph.h"
#include "fullbore/ir/literal.h"
#include "fullbore/runtime/compare_nodes.h"
#include "fullbore/runtime/program.h"

namespace fullbore::testing_support {

/// See runtime/compare_nodes.h.
inline std::vector<Literal> run_graph(const Graph& graph, std::span<const Literal> inputs,
                                      const std::shared_ptr<Device>& device,
                                      const CompileOptions& options) {
  return run_on_device(graph, inputs, device, options);
}
using fullbore::with_all_values;
inline std::string check_against_oracle(const Graph& graph, std::span<const Literal> inputs,
                                        const std::shared_ptr<Device>& device,
                                        const CompileOptions& options) {
  return first_difference(graph, inputs, device, options);
}

/// Element by element equality of the stored bits; "" or the first difference.
std::string compare_bits(std::span<const Literal> a, std::span<const Literal> b);

}  // namespace fullbore::testing_support
