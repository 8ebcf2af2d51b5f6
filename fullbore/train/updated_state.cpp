#include "fullbore/train/updated_state.h"

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

}  // namespace fullbore
