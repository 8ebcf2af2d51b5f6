#include "tests/support/loop_programs.h"

#include <fmt/format.h>

#include "fullbore/autodiff/backward.h"
#include "tests/support/gradcheck.h"

namespace fullbore {
namespace {

const TensorType kScalar{DType::f64, {}};
const TensorType kVector{DType::f64, {3}};
const TensorType kMatrix{DType::f64, {3, 3}};
const TensorType kInteger{DType::i64, {}};

using Captured = std::vector<Tensor>;

TensorType rows(int64_t iterations, const TensorType& row) {
  return {row.dtype, row.shape.inserted(0, iterations)};
}

Tensor times(Tensor matrix, Tensor vector) {
  return reshape(matmul(matrix, reshape(vector, {3, 1})), {3});
}

Tensor row_of(Tensor x, int64_t index) {
  return reshape(slice(x, 0, index, index + 1), x.shape().without(0));
}

// h <- tanh(W h + x_t + b), stacks h.
IterationResults recurrence(const LoopBody& in, const Captured& captured) {
  const Tensor h = tanh(times(captured[0], in.carried[0]) + in.slices[0] + captured[1]);
  return {.carried = {h}, .stacked = {h}};
}

// Two carried values that exchange places, a counter, and a use of the index.
IterationResults exchange(const LoopBody& in, const Captured& captured) {
  const Tensor a = in.carried[0], b = in.carried[1], n = in.carried[2];
  const Tensor position = cast(in.index + n, DType::f64);
  return {.carried = {sin(b) + captured[0] * position, a * b, n + 1.0},
          .stacked = {a * position, n}};
}

// Newton's iteration for a square root, until it moves little: a decision by carried values.
IterationResults newton(const LoopBody& in, const Captured& captured) {
  const Tensor x = in.carried[0], target = exp(captured[0]);
  const Tensor next = (x + target / x) * 0.5;
  return {.carried = {next}, .stacked = {x * x}, .stop = less(abs(next - x), 0.05)};
}

IterationResults stop_at_two(const LoopBody& in, const Captured& captured) {
  const Tensor h = cos(in.carried[0] * captured[0]) + in.slices[0];
  return {.carried = {h}, .stacked = {h * in.slices[0]}, .stop = equal(in.index, 2.0)};
}

// A loop within the iteration, over the same weight and over what the outer loop carries. In the
// unrolled program, which has no body around it, it is unrolled too.
IterationResults nested(const LoopBody& in, const Captured& captured) {
  const Tensor outer = in.carried[0];
  const auto iteration = [&](Tensor h, Tensor row) {
    return tanh(times(captured[0], h) * outer + row);
  };
  Tensor last, sum;
  if (outer.builder().outer()) {
    const LoopResult inner =
        loop(outer.builder(), {outer}, {captured[1]}, {.iterations = 2}, [&](const LoopBody& body) {
          const Tensor h = iteration(body.carried[0], body.slices[0]);
          return IterationResults{.carried = {h}, .stacked = {h * h}};
        });
    last = inner.carried[0];
    sum = reduce_sum(inner.stacked[0], {0});
  } else {
    const Tensor first = iteration(outer, row_of(captured[1], 0));
    last = iteration(first, row_of(captured[1], 1));
    sum = first * first + last * last;
  }
  return {.carried = {last + in.slices[0]}, .stacked = {sum}};
}

// What no carried value passes through, what passes unchanged, what is overwritten.
IterationResults idle(const LoopBody& in, const Captured& captured) {
  return {.carried = {in.carried[0], in.slices[0] * captured[0]},
          .stacked = {exp(captured[0]), in.carried[0] * in.slices[0], in.carried[1]}};
}

// A gradient inside an iteration, as in accumulation over micro-batches.
IterationResults accumulation(const LoopBody& in, const Captured& captured) {
  const Tensor weight = captured[0];
  const Tensor loss = reduce_sum(tanh(weight * in.slices[0]) * weight, {0});
  const Tensor d = gradient(loss, std::span(&weight, 1))[0];
  return {.carried = {in.carried[0] + loss, in.carried[1] + d}, .stacked = {loss}};
}

LoopProgram with_iterations(LoopProgram program, std::string name, int64_t iterations) {
  program.name = std::move(name);
  program.iterations = iterations;
  return program;
}
LoopProgram reversed(LoopProgram program) {
  program.name += "_reverse";
  program.reverse = true;
  return program;
}
LoopProgram counted(LoopProgram program, int64_t count) {
  program.name += fmt::format("_counted_{}", count < 0 ? "none" : std::to_string(count));
  program.counted = true;
  program.count = count;
  return program;
}

LoopBody open(const LoopProgram& program, const std::vector<Tensor>& inputs) {
  const auto after_carried = inputs.begin() + static_cast<std::ptrdiff_t>(program.carried.size());
  const auto after_sliced = after_carried + static_cast<std::ptrdiff_t>(program.sliced.size());
  return {{}, {inputs.begin(), after_carried}, {after_carried, after_sliced}};
}

std::vector<Tensor> by_loop(GraphBuilder& builder, const LoopProgram& program,
                            const LoopBody& operands, const Captured& captured, Tensor count) {
  const LoopResult result =
      loop(builder, operands.carried, operands.slices,
           {.iterations = program.iterations,
            .reverse = program.reverse,
            .count = count,
            .segments = program.segments},
           [&](const LoopBody& body) { return program.body(body, captured); });
  std::vector<Tensor> outputs = result.carried;
  outputs.insert(outputs.end(), result.stacked.begin(), result.stacked.end());
  if (result.executed.valid()) outputs.push_back(result.executed);
  return outputs;
}

std::vector<Tensor> unrolled(GraphBuilder& builder, const LoopProgram& program,
                             const LoopBody& operands, const Captured& captured, Tensor count) {
  std::vector<Tensor> carried = operands.carried;
  std::vector<std::vector<Tensor>> stacked;
  Tensor going = full(builder, {DType::boolean, {}}, 1);
  Tensor executed = full(builder, kInteger, 0);
  const double bound = static_cast<double>(program.iterations);
  const Tensor iterations = count.valid() ? minimum(count, bound) : full(builder, kInteger, bound);
  bool until = false;
  for (int64_t iteration = 0; iteration < program.iterations; ++iteration) {
    const int64_t index = program.reverse ? program.iterations - 1 - iteration : iteration;
    const Tensor at = full(builder, kInteger, static_cast<double>(index));
    LoopBody body{at, carried, {}};
    for (Tensor x : operands.slices) body.slices.push_back(row_of(x, index));
    const IterationResults results = program.body(body, captured);
    const Tensor made = logical_and(going, less(at, iterations));
    for (size_t i = 0; i < carried.size(); ++i)
      carried[i] = select(made, results.carried[i], carried[i]);
    stacked.resize(results.stacked.size());
    for (size_t i = 0; i < results.stacked.size(); ++i) {
      const Tensor row = select(made, results.stacked[i], 0.0);
      const Tensor as_row = expand_dims(row, 0);
      stacked[i].insert(program.reverse ? stacked[i].begin() : stacked[i].end(), as_row);
    }
    executed = executed + cast(made, DType::i64);
    if (!results.stop.valid()) continue;
    until = true;
    going = logical_and(going, logical_not(logical_and(made, results.stop)));
  }
  std::vector<Tensor> outputs = carried;
  for (const std::vector<Tensor>& parts : stacked) outputs.push_back(concat(parts, 0));
  if (until) outputs.push_back(executed);
  return outputs;
}

}  // namespace

Graph loop_program_graph(const LoopProgram& program, bool without_loop) {
  GraphBuilder builder(program.name);
  std::vector<Tensor> inputs, captured;
  for (const TensorType& type : program.carried)
    inputs.push_back(builder.input(fmt::format("carried{}", inputs.size()), Role::batch, type));
  for (const TensorType& type : program.sliced)
    inputs.push_back(builder.input(fmt::format("sliced{}", inputs.size()), Role::batch,
                                   rows(program.iterations, type)));
  for (const TensorType& type : program.captured)
    captured.push_back(
        builder.input(fmt::format("captured{}", captured.size()), Role::batch, type));
  const Tensor count = program.counted ? builder.input("count", Role::batch, kInteger) : Tensor{};
  const auto write = without_loop ? unrolled : by_loop;
  const std::vector<Tensor> outputs =
      write(builder, program, open(program, inputs), captured, count);
  for (size_t i = 0; i < outputs.size(); ++i) builder.output(fmt::format("y{}", i), outputs[i]);
  return builder.take();
}

std::vector<Literal> loop_program_inputs(const LoopProgram& program, uint64_t seed) {
  const Graph graph = loop_program_graph(program, false);
  std::vector<Literal> inputs;
  for (const Graph::Input& input : graph.inputs()) {
    Literal literal = random_literal(graph.type(input.value), seed, inputs.size());
    for (double& each : literal.reals()) each *= 0.5;
    for (int64_t& each : literal.integers()) each = std::abs(each) % 4;
    if (input.name == "count") literal.integers()[0] = program.count;
    inputs.push_back(std::move(literal));
  }
  return inputs;
}

std::vector<LoopProgram> loop_programs() {
  const LoopProgram rnn{.name = "recurrence",
                        .carried = {kVector},
                        .sliced = {kVector},
                        .captured = {kMatrix, kVector},
                        .iterations = 5,
                        .body = recurrence};
  const LoopProgram swap{.name = "exchange",
                         .carried = {kScalar, kScalar, kInteger},
                         .captured = {kScalar},
                         .iterations = 4,
                         .body = exchange};
  const LoopProgram root{.name = "newton",
                         .carried = {kScalar},
                         .captured = {kScalar},
                         .iterations = 12,
                         .body = newton};
  const LoopProgram stop{.name = "stop_at_two",
                         .carried = {kVector},
                         .sliced = {kVector},
                         .captured = {kVector},
                         .iterations = 6,
                         .body = stop_at_two};
  const LoopProgram two{.name = "nested",
                        .carried = {kVector},
                        .sliced = {kVector},
                        .captured = {kMatrix, {DType::f64, {2, 3}}},
                        .iterations = 3,
                        .body = nested};
  const LoopProgram quiet{.name = "idle",
                          .carried = {kVector, kVector},
                          .sliced = {kVector},
                          .captured = {kVector},
                          .iterations = 3,
                          .body = idle};
  const LoopProgram sums{.name = "accumulation",
                         .carried = {kScalar, kVector},
                         .sliced = {kVector},
                         .captured = {kVector},
                         .iterations = 3,
                         .body = accumulation};
  return {rnn,
          with_iterations(rnn, "recurrence_one_iteration", 1),
          reversed(rnn),
          counted(rnn, 3),
          counted(rnn, 9),
          counted(rnn, 0),
          counted(rnn, -2),
          counted(reversed(rnn), 3),
          swap,
          reversed(swap),
          counted(swap, 2),
          root,
          stop,
          reversed(stop),
          counted(stop, 2),
          counted(stop, 5),
          counted(reversed(stop), 4),
          two,
          reversed(two),
          counted(two, 2),
          quiet,
          counted(quiet, 2),
          sums};
}

}  // namespace fullbore
