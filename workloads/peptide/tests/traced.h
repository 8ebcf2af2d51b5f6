#pragma once
#include <map>
#include <string>
#include <vector>

#include "fullbore/trace/trace.h"
#include "tests/support/interpret_by_name.h"
#include "workloads/peptide/losses.h"
#include "workloads/peptide/residues.h"

namespace fullbore::peptide::testing {

/// The default alphabet's masses, as the losses take them.
inline LossMasses reference_masses() {
  const ResidueAlphabet alphabet;
  const MassConstants& constants = alphabet.constants();
  return {{alphabet.masses().begin(), alphabet.masses().end()},
          constants.water,
          constants.proton,
          constants.carbon_monoxide};
}

inline Literal literal(TensorType type, const std::vector<double>& values) {
  Literal result(std::move(type));
  for (size_t i = 0; i < values.size(); ++i) result.put(static_cast<int64_t>(i), values[i]);
  return result;
}

/// The parameters of a graph as its initialisers make them, from a seed.
inline std::map<std::string, Literal> initial_parameters(
    const Graph& graph, const std::map<std::string, Initializer>& initializers, uint64_t seed) {
  std::map<std::string, Literal> values;
  for (const Graph::Input& input : graph.inputs()) {
    const TensorType type = graph.type(input.value);
    if (input.role == Role::batch || type.dtype != DType::f32) continue;
    std::vector<float> numbers(static_cast<size_t>(type.elements()));
    initialize(initializers.at(input.name), type, seed, input.name, numbers.data());
    values[input.name] = literal(type, {numbers.begin(), numbers.end()});
  }
  return values;
}

}  // namespace fullbore::peptide::testing
