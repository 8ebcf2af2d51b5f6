#include "fullbore/train/updated_state.h"

#include <algorithm>

#include "fullbore/base/check.h"

namespace fullbore {
namespace {

Loss trace_into(Trace& trace, const LossFunction& loss, const std::vector<BatchField>& fields) {
  std::vector<Tensor> batch;
  for (const BatchField& field : fields) batch.push_back(trace.batch(field.name, field.type));
  return loss(trace, batch);
}

}  // namespace

UpdatedState updated_state(const LossFunction& loss, const std::vector<BatchField>& fields) {
  Trace first("rehearsal", true);
  const Loss made = trace_into(first, loss, fields);
  UpdatedState result{.names = {}, .others = !made.carried.empty()};
  if (!first.has_outputs()) return result;
  // Once more with all that may be updated carried: what it is at the end tells what the model has done with it, and
  // the trace has outputs only of what is left.
  Trace second("rehearsal", true);
  std::vector<CarriedState::Entry> before;
  const Graph& graph = first.builder().graph();
  for (const Graph::Input& input : graph.inputs())
    if (input.role == Role::control)
      before.push_back({input.name, second.state(input.name, input.role, graph.type(input.value),
                                                 first.initializers().at(input.name))});
  const CarriedState carried(second, before);
  trace_into(second, loss, fields);
  const std::vector<Tensor> after = carried.next();
  for (size_t i = 0; i < before.size(); ++i)
    if (after[i].value() != before[i].value.value()) result.names.push_back(before[i].name);
  result.others = result.others || second.has_outputs();
  return result;
}

std::vector<std::string> possibly_updated(Trace& trace) {
  std::vector<std::string> names;
  if (!trace.has_outputs()) return names;
  for (const Graph::Input& input : trace.builder().graph().inputs())
    if (is_state(input.role) && input.role != Role::parameter && input.name != "step")
      names.push_back(input.name);
  return names;
}

Graph with_state_kept_when_skipped(const Graph& graph, const std::vector<std::string>& names) {
  const auto is_kept_then = [&](const Graph::Output& output) {
    return output.updates >= 0 && std::ranges::find(names, output.name) != names.end();
  };
  if (std::ranges::none_of(graph.outputs(), is_kept_then)) return graph;
  GraphBuilder builder(graph.name());
  std::vector<Tensor> inputs;
  for (const Graph::Input& input : graph.inputs())
    inputs.push_back(builder.input_like(input, graph.type(input.value)));
  std::vector<Tensor> outputs = inline_graph(builder, graph, inputs);
  const int skipped = graph.find_output("skipped");
  FB_CHECK(skipped >= 0, "'{}' does not tell whether it is skipped", graph.name());
  const Tensor is_skipped = greater(outputs[static_cast<size_t>(skipped)], 0.0);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Graph::Output& output = graph.outputs()[i];
    if (is_kept_then(output))
      outputs[i] = select(is_skipped, inputs[static_cast<size_t>(output.updates)], outputs[i]);
    builder.output(output.name, outputs[i], output.updates);
  }
  return builder.take();
}

}  // namespace fullbore
