#include "fullbore/nn/recurrent_layers.h"

#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <vector>

#include "fullbore/base/error.h"
#include "fullbore/ir/fp32_scope.h"
#include "fullbore/nn/gru.h"
#include "fullbore/trace/control.h"

namespace fullbore::nn {
namespace {

struct Memory {
  Tensor hidden;
  Tensor cell;  ///< none in a gated recurrent unit
};
using Step = std::function<Memory(Tensor from_input, const Memory& now, const GruWeights& weights)>;

/// What one kind of layer is.
struct Kind {
  const char* name;
  int64_t gates;
  bool has_cell;
  Step step;
};

Tensor as(Tensor parameter, DType dtype, SourceLoc loc) {
  return parameter.dtype() == dtype ? parameter : cast(parameter, dtype, loc);
}

/// x [..., I] times W [R,I]: [..., R].
Tensor times(Tensor x, Tensor weight, SourceLoc loc) {
  return linear(x, as(weight, x.dtype(), loc), {}, loc);
}

GruWeights declare(Trace& trace, const std::string& suffix, int64_t gates, int64_t inputs,
                   int64_t units, SourceLoc loc) {
  const double bound = 1 / std::sqrt(static_cast<double>(units));
  const auto parameter = [&](const char* what, Shape shape) {
    return trace.parameter(what + suffix, std::move(shape), Initializer::uniform(-bound, bound),
                           loc);
  };
  GruWeights weights;
  weights.input = parameter("weight_ih", {gates * units, inputs});
  weights.hidden = parameter("weight_hh", {gates * units, units});
  weights.input_bias = parameter("bias_ih", {gates * units});
  weights.hidden_bias = parameter("bias_hh", {gates * units});
  return weights;
}

/// A layer's first state: its row of what is given, or zeros.
Tensor first_state(Tensor given, int64_t row, Tensor x, int64_t units, SourceLoc loc) {
  const Shape shape{x.dim(1), units};
  if (!given.valid()) return full(x.builder(), {x.dtype(), shape}, 0);
  return reshape(slice(as(given, x.dtype(), loc), 0, row, row + 1, 1, loc), shape, loc);
}

void check_given(const Kind& kind, const char* what, Tensor given, Tensor x, int64_t rows,
                 int64_t units, SourceLoc loc) {
  if (!given.valid()) return;
  const Shape wanted{rows, x.dim(1), units};
  if (given.shape() != wanted || !is_floating(given.dtype()))
    throw UsageError(fmt::format("{}: the first {} is {}, and {} was expected", kind.name, what,
                                 given.type().text(), TensorType{x.dtype(), wanted}.text()),
                     loc);
}

RecurrentResult layers(const Kind& kind, Trace& trace, const std::string& name, Tensor given,
                       int64_t units, const RecurrentOptions& options, SourceLoc loc) {
  if (!given.valid() || given.rank() != 3 || !is_floating(given.dtype()))
    throw UsageError(fmt::format("{}: needs x {}, floating, got {}", kind.name,
                                 options.batch_first ? "[B,T,I]" : "[T,B,I]",
                                 given.valid() ? given.type().text() : "an empty Tensor"),
                     loc);
  if (units < 1 || options.layers < 1)
    throw UsageError(fmt::format("{}: {} layers of {} units", kind.name, options.layers, units),
                     loc);
  Tensor x = options.batch_first ? transpose(given, {1, 0, 2}, loc) : given;
  const int64_t directions = options.bidirectional ? 2 : 1;
  check_given(kind, "hidden state", options.hidden, x, options.layers * directions, units, loc);
  if (kind.has_cell)
    check_given(kind, "cell state", options.cell, x, options.layers * directions, units, loc);
  else if (options.cell.valid())
    throw UsageError(fmt::format("{}: it has no cell state", kind.name), loc);

  const Scope scope(trace, name);
  std::vector<Tensor> hidden, cells;
  for (int64_t layer = 0; layer < options.layers; ++layer) {
    std::vector<Tensor> sides;
    for (int64_t direction = 0; direction < directions; ++direction) {
      const std::string suffix = fmt::format("_l{}{}", layer, direction == 0 ? "" : "_reverse");
      const GruWeights weights = declare(trace, suffix, kind.gates, x.dim(-1), units, loc);
      const int64_t row = layer * directions + direction;
      Memory first{first_state(options.hidden, row, x, units, loc), {}};
      if (kind.has_cell) first.cell = first_state(options.cell, row, x, units, loc);
      const auto made = scan(
          first, times(x, weights.input, loc),
          {.reverse = direction == 1, .segments = options.segments},
          [&](const Memory& now, Tensor from_input) {
            const Memory next = kind.step(from_input, now, weights);
            return Scanned<Memory, Tensor>{next, next.hidden};
          },
          loc);
      sides.push_back(made.output);
      hidden.push_back(expand_dims(made.state.hidden, 0, loc));
      if (kind.has_cell) cells.push_back(expand_dims(made.state.cell, 0, loc));
    }
    x = sides.size() == 1 ? sides[0] : concat(sides, 2, loc);
  }
  RecurrentResult result{options.batch_first ? transpose(x, {1, 0, 2}, loc) : x,
                         concat(hidden, 0, loc)};
  if (kind.has_cell) result.cell = concat(cells, 0, loc);
  return result;
}

Memory lstm_step(Tensor from_input, const Memory& now, const GruWeights& weights, SourceLoc loc) {
  const int64_t units = now.hidden.dim(-1);
  const DType dtype = now.hidden.dtype();
  const Tensor from_hidden = times(now.hidden, weights.hidden, loc);
  const auto part = [&](Tensor gates, int64_t which) {
    return slice(gates, -1, which * units, (which + 1) * units, 1, loc);
  };
  const auto gate = [&](int64_t which) {
    // What a gate sees is never rounded, whatever its operands are.
    const Fp32Scope island(from_hidden.builder());
    return part(from_input, which) + part(from_hidden, which) +
           (part(as(weights.input_bias, dtype, loc), which) +
            part(as(weights.hidden_bias, dtype, loc), which));
  };
  const Tensor cell = sigmoid(gate(1), loc) * now.cell + sigmoid(gate(0), loc) * tanh(gate(2), loc);
  return {sigmoid(gate(3), loc) * tanh(cell, loc), cell};
}

}  // namespace

RecurrentResult gru(Trace& trace, const std::string& name, Tensor x, int64_t units,
                    const RecurrentOptions& options, SourceLoc loc) {
  const auto step = [loc](Tensor from_input, const Memory& now, const GruWeights& weights) {
    return Memory{gru_gates(from_input, now.hidden, weights, loc), {}};
  };
  return layers({"gru", 3, false, step}, trace, name, x, units, options, loc);
}

RecurrentResult lstm(Trace& trace, const std::string& name, Tensor x, int64_t units,
                     const RecurrentOptions& options, SourceLoc loc) {
  const auto step = [loc](Tensor from_input, const Memory& now, const GruWeights& weights) {
    return lstm_step(from_input, now, weights, loc);
  };
  return layers({"lstm", 4, true, step}, trace, name, x, units, options, loc);
}

}  // namespace fullbore::nn
