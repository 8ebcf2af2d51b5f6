#include "fullbore/runtime/quantized_state.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "fullbore/base/check.h"
#include "fullbore/base/error.h"
#include "fullbore/base/quantize.h"
#include "fullbore/passes/gemm/quantize_linears.h"

namespace fullbore {
namespace {

/// The parameter whose 8-bit weights the entry is, or "".
std::string parameter_of(const StateEntry& entry) {
  const bool weights = entry.derived && entry.derived->in_8_bits() && !entry.derived->scales;
  return weights ? entry.derived->parameter : "";
}

}  // namespace

std::set<std::string> quantized_parameters(const State& state) {
  std::set<std::string> names;
  for (const StateEntry& entry : state.entries())
    if (const std::string name = parameter_of(entry);
        !name.empty() && state.find(int8_scale_name(name)) >= 0)
      names.insert(name);
  return names;
}

Graph in_8_bits(const Graph& graph, const State& state) {
  const std::set<std::string> names = quantized_parameters(state);
  return names.empty() ? graph : quantize_linears(graph, names).graph;
}

State quantized_state(const State& from, std::vector<StateEntry> entries) {
  State state(std::move(entries), from.shared_device());
  for (size_t i = 0; i < state.entries().size(); ++i) {
    const StateEntry& entry = state.entries()[i];
    if (const int same = from.find(entry.name); same >= 0) {
      FB_CHECK(from.entries()[static_cast<size_t>(same)].type == entry.type, "'{}' differs",
               entry.name);
      state.was_written(static_cast<int>(i));
      state.device().copy(from.address(same), state.address(static_cast<int>(i)),
                          entry.type.bytes());
    }
    const std::string name = parameter_of(entry);
    if (name.empty() || from.find(name) < 0) continue;
    const Shape& shape = entry.type.shape;
    std::vector<int8_t> weights(static_cast<size_t>(shape[0] * shape[1]));
    std::vector<float> scales(static_cast<size_t>(shape[0]));
    if (!quantize_rows(from.read<float>(name).data(), shape[0], shape[1], weights.data(),
                       scales.data()))
      throw NumericalError(
          fmt::format("'{}' {} has a value that is not finite: it has no 8-bit form", name,
                      TensorType{DType::f32, shape}.text()));
    state.write(entry.name, weights);
    state.write(int8_scale_name(name), scales);
  }
  return state;
}

}  // namespace fullbore
