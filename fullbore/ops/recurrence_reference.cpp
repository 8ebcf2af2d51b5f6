#include "fullbore/ops/recurrence_reference.h"

namespace fullbore {

using namespace recurrence;  // NOLINT: what references of recurrences are written with

namespace {

// What token t reads of the state that it sees.
void read(const Head& head, const Matrix& seen, int64_t chunk, int64_t t, ReferenceCall& call) {
  const auto terms = static_cast<double>(head.keys());
  for (int64_t i = 0; i < head.keys(); ++i)
    for (int64_t j = 0; j < head.values(); ++j) {
      const double slack = head.slack(chunk, i) + terms;
      put(call, 0, head.value_at(t, j), product(head.at(seen, i, j), head.r(t, i)), slack);
      if (!head.shape().bonus()) continue;
      Sum bonus;
      bonus.add(head.r(t, i) * head.u(i) * head.k(t, i) * head.v(t, j));
      put(call, 0, head.value_at(t, j), bonus, slack);
    }
}

void read_tokens(const Head& head, Matrix& state, int64_t chunk, ReferenceCall& call) {
  const int64_t first = chunk * head.shape().chunk;
  for (int64_t t = first; t < first + head.shape().chunk_tokens(chunk); ++t) {
    if (head.reset(t)) head.forget(state);
    if (head.shape().bonus()) read(head, state, chunk, t, call);
    head.advance(state, t);
    if (!head.shape().bonus()) read(head, state, chunk, t, call);
  }
}

}  // namespace

void linear_recurrence_reference(ReferenceCall& call) {
  Call operands(call, call.inputs[0], 1, 3);
  if (operands.shape.bonus()) operands.u = call.inputs[4];
  const Literal& initial = *call.inputs[operands.shape.bonus() ? 5 : 4];
  allocate_magnitudes(call);
  for_each_head(operands, [&](const Head& head) {
    Matrix state = head.state(initial, head.state_at(0, 0));
    for (int64_t chunk = 0; chunk < operands.shape.chunks; ++chunk)
      read_tokens(head, state, chunk, call);
    for (size_t i = 0; i < state.size(); ++i) put(call, 1, head.state_at(0, 0) + i, state[i], 1);
  });
}

void recurrence_outputs_reference(ReferenceCall& call) {
  Call operands(call, call.inputs[0], 1, 3);
  if (operands.shape.bonus()) operands.u = call.inputs[4];
  const Literal& states = *call.inputs[operands.shape.bonus() ? 5 : 4];
  allocate_magnitudes(call);
  for_each_head(operands, [&](const Head& head) {
    for (int64_t chunk = 0; chunk < operands.shape.chunks; ++chunk) {
      Matrix state = head.state(states, head.states_at(chunk, 0, 0));
      read_tokens(head, state, chunk, call);
    }
  });
}

void recurrence_states_reference(ReferenceCall& call) {
  const Call operands(call, nullptr, 0, 2);
  const RecurrenceShape& shape = operands.shape;
  const bool reverse = call.attributes.get<bool>("reverse");
  allocate_magnitudes(call);
  for_each_head(operands, [&](const Head& head) {
    Matrix state = head.state(*call.inputs[3], head.state_at(0, 0));
    std::vector<double> error(state.size(), 0);  // what earlier chunks left, in epsilons
    const auto put_state = [&](size_t output, size_t first) {
      for (size_t i = 0; i < state.size(); ++i) {
        call.outputs[output].reals()[first + i] = state[i].value;
        call.magnitudes[output][first + i] = error[i];
      }
    };
    for (int64_t step = 0; step < shape.chunks; ++step) {
      const int64_t chunk = reverse ? shape.chunks - 1 - step : step;
      put_state(0, head.states_at(chunk, 0, 0));
      const int64_t first = chunk * shape.chunk, tokens = shape.chunk_tokens(chunk);
      for (int64_t i = 0; i < tokens; ++i) {
        const int64_t t = reverse ? first + tokens - 1 - i : first + i;
        if (!reverse) {
          head.advance(state, t);
          continue;
        }
        if (shape.inclusive) head.take(state, t);
        head.decay(state, t);
        if (!shape.inclusive) head.take(state, t);
        if (head.reset(t)) head.forget(state);
      }
      for (int64_t i = 0; i < shape.keys; ++i)
        for (int64_t j = 0; j < shape.values; ++j)
          error[place(i * shape.values + j)] += head.slack(chunk, i) * head.at(state, i, j).size;
    }
    put_state(1, head.state_at(0, 0));
  });
}

}  // namespace fullbore
