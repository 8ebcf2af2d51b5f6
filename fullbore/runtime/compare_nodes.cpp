#include "fullbore/runtime/compare_nodes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>

#include "fullbore/base/philox.h"
#include "fullbore/device/interpret.h"
#include "fullbore/ir/loop.h"
#include "fullbore/ir/op_def.h"
#include "fullbore/ir/print.h"
#include "fullbore/ops/ops.h"
#include "fullbore/passes/gemm/derived_weights.h"
#include "fullbore/passes/support/defined_rows.h"

namespace fullbore {
namespace {

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};

constexpr int kPerturbations = 12;
constexpr double kPerturbationMargin = 16;

// Kernels compute low precision in f32 and everything else in its own dtype.
double compute_epsilon(DType dtype) {
  return dtype == DType::f64 ? dtype_epsilon(DType::f64) : dtype_epsilon(DType::f32);
}

// What a kernel may make of an operand before it multiplies: two roundings of f32, and one to tf32 where a matmul says so.
double operand_epsilon(const Node& node, DType dtype) {
  const bool tf32 = dtype == DType::f32 && node.attributes.get_or("tf32", false);
  return 2 * compute_epsilon(dtype) + (tf32 ? 0x1p-11 : 0);
}

// +1 or -1 by the iteration of a loop, in one of eight patterns: the parity of some of its index's bits. What
// iterations add up would otherwise err by the same share in each, and the errors cancel where the sum does.
Tensor sign_of_iteration(Tensor index, DType dtype, PhiloxStream& draws) {
  const Tensor bits = bit_and(index, static_cast<double>(draws.below(8)));
  const Tensor odd = bit_and(bit_xor(bit_xor(bits, shift_right(bits, 1)), shift_right(bits, 2)), 1);
  return 1 - 2 * cast(odd, dtype);
}

// An error of either sign and up to `most`, at least half of it. Were all of one size, those of two factors would
// cancel in half of all draws, and once in 4096 elements in all twelve.
double some_error(double most, PhiloxStream& draws) {
  const double size = most * draws.uniform(0.5, 1);
  return draws.below(2) == 0 ? -size : size;
}

// x, each element multiplied by 1 plus or minus up to `error`; `index`: the iteration's, or none outside loops.
Tensor shaken(Tensor x, double error, PhiloxStream& draws, Tensor index) {
  std::vector<double> errors(static_cast<size_t>(x.type().elements()));
  for (double& each : errors) each = some_error(error, draws);
  Tensor by = constant(x.builder(), x.type(), std::move(errors));
  if (index.valid()) by = by * broadcast_to(sign_of_iteration(index, x.dtype(), draws), x.shape());
  return x * (1 + by);  // which leaves infinity what it is
}

// x in f16 as far off as a kernel that rounds it may be below the normal numbers, where rounding errs by
// half a step whatever the size. A zero is exact.
Tensor shaken_below_normal(Tensor x, PhiloxStream& draws, Tensor index) {
  constexpr double kStep = 0x1p-24;  // the half of it is no constant in f16
  std::vector<double> steps(static_cast<size_t>(x.type().elements()));
  for (double& step : steps) step = draws.below(2) == 0 ? -kStep : kStep;
  Tensor error = constant(x.builder(), x.type(), std::move(steps)) * 0.5;
  if (index.valid())
    error = error * broadcast_to(sign_of_iteration(index, x.dtype(), draws), x.shape());
  return select(equal(x, zeros_like(x)), x, x + error);
}

// What a comparison compares, the second operand made equal to the first where rounding alone may keep
// them apart: two ways to one number, of which a kernel went the same way twice.
std::vector<Tensor> brought_together(const std::vector<Tensor>& operands) {
  const Tensor a = operands[0];
  const Tensor b = operands[1];
  const double few_ulps = 64 * compute_epsilon(a.dtype()) +
                          (is_low_precision(a.dtype()) ? dtype_epsilon(a.dtype()) : 0);
  const Tensor near = less_equal(abs(a - b), maximum(abs(a), abs(b)) * few_ulps);
  return {a, select(near, a, b)};
}

bool compares_numbers(const Graph& graph, const Node& node) {
  return node.op->is(Tag::elementwise) && node.inputs.size() == 2 &&
         graph.type(node.outputs[0]).dtype == DType::boolean &&
         is_floating(graph.type(node.inputs[0]).dtype);
}

// x, infinite where its dtype has no number as large: within a loop the reference would go on with a double that no
// kernel has.
Tensor overflowing(Tensor x) {
  if (x.dtype() == DType::f64) return x;
  const Tensor fits = less_equal(abs(x), dtype_largest(x.dtype()));
  return select(fits, x, x * std::numeric_limits<double>::infinity());
}

// The body of a loop, and of those in it, whose results overflow as a kernel's do.
Graph with_overflow(const Graph& graph) {
  GraphBuilder builder(graph.name());
  std::vector<Tensor> tensors(static_cast<size_t>(graph.value_count()));
  for (const Graph::Input& input : graph.inputs())
    tensors[static_cast<size_t>(input.value.id)] =
        builder.input_like(input, graph.type(input.value));
  for (const Node& node : graph.nodes()) {
    std::vector<Tensor> operands;
    for (Value input : node.inputs) operands.push_back(tensors[static_cast<size_t>(input.id)]);
    Node copy = node;
    if (node.body) copy.body = std::make_shared<const Graph>(with_overflow(*node.body));
    const std::vector<Tensor> results = builder.emit_like(copy, operands);
    const bool exact = node.op->is(Tag::movement) || node.op->is(Tag::identity);
    for (size_t i = 0; i < results.size(); ++i)
      tensors[static_cast<size_t>(node.outputs[i].id)] =
          exact || node.body || !is_floating(results[i].dtype()) ? results[i]
                                                                 : overflowing(results[i]);
  }
  for (const Graph::Output& output : graph.outputs())
    builder.output(output.name, tensors[static_cast<size_t>(output.value.id)], output.updates);
  return builder.take();
}

// The graph with every floating result multiplied by 1 + (a random error of its rounding), and so
// is what goes into sums: their errors are those of what they add, not of the result. `of_loop`: the
// graph is a loop's body.
Graph perturbed(const Graph& graph, PhiloxStream& draws, bool of_loop) {
  GraphBuilder builder(graph.name());
  std::vector<Tensor> tensors(static_cast<size_t>(graph.value_count()));
  for (const Graph::Input& input : graph.inputs())
    tensors[static_cast<size_t>(input.value.id)] =
        builder.input_like(input, graph.type(input.value));
  const Tensor index =
      of_loop ? tensors[static_cast<size_t>(graph.inputs()[0].value.id)] : Tensor();
  for (const Node& node : graph.nodes()) {
    const bool exact = node.op->is(Tag::movement) || node.op->is(Tag::identity);
    const bool adds_up = !exact && !node.op->is(Tag::elementwise) && !node.body;
    std::vector<Tensor> operands;
    for (Value input : node.inputs) {
      const Tensor operand = tensors[static_cast<size_t>(input.id)];
      const bool shake = adds_up && is_floating(operand.dtype());
      operands.push_back(
          shake ? shaken(operand, operand_epsilon(node, operand.dtype()), draws, index) : operand);
    }
    if (compares_numbers(graph, node) && draws.below(2) == 0) operands = brought_together(operands);
    Node copy = node;
    if (node.body)
      copy.body = std::make_shared<const Graph>(perturbed(*node.body, draws, is_loop(node)));
    std::vector<Tensor> results = builder.emit_like(copy, operands);
    for (size_t i = 0; i < results.size(); ++i) {
      const TensorType type = results[i].type();
      if (is_floating(type.dtype) && !exact) {
        const double ulps = node.op->is(Tag::elementwise) ? scalar_op_ulps(node.op->scalar) : 2;
        // A narrow result is computed in f32 and, unless it stays within one kernel, rounded.
        const double error = ulps * compute_epsilon(type.dtype) +
                             (is_low_precision(type.dtype) ? dtype_epsilon(type.dtype) / 2 : 0);
        results[i] = shaken(results[i], error, draws, index);
        if (type.dtype == DType::f16) results[i] = shaken_below_normal(results[i], draws, index);
      }
      tensors[static_cast<size_t>(node.outputs[i].id)] = results[i];
    }
  }
  for (const Graph::Output& output : graph.outputs())
    builder.output(output.name, tensors[static_cast<size_t>(output.value.id)], output.updates);
  return builder.take();
}

struct Expectation {
  Literal value;
  std::vector<double> bound;  ///< per element; negative: not comparable (a decision near its edge)
  /// Is the order of its arithmetic open, so that infinities may meet and become NaN, or not?
  bool any_order = false;
  /// Per element, or empty: a partial sum may be so large.
  std::vector<double> largest_sum = {};
};

// What a kernel has overflowed to infinity, the oracle has as a large double: inside a body nobody
// sees it, but what is made of it differs.
void overflow(Literal& value) {
  if (!value.floating()) return;
  const double largest = dtype_largest(value.dtype());
  for (double& x : value.reals())
    if (std::abs(x) > largest) x = std::copysign(std::numeric_limits<double>::infinity(), x);
}

std::vector<Literal> interpret_region(const Node& node, const std::vector<TensorType>& types,
                                      const std::vector<const Literal*>& operands) {
  if (is_loop(node)) {
    Node bounded = node;
    bounded.body = std::make_shared<const Graph>(with_overflow(*node.body));
    return interpret_node(bounded, types, operands);
  }
  const Graph& body = *node.body;
  std::vector<Literal> values(static_cast<size_t>(body.value_count()));
  for (size_t i = 0; i < body.inputs().size(); ++i)
    values[static_cast<size_t>(body.inputs()[i].value.id)] = *operands[i];
  for (const Node& inner : body.nodes()) {
    std::vector<const Literal*> inputs;
    for (Value input : inner.inputs) inputs.push_back(&values[static_cast<size_t>(input.id)]);
    std::vector<TensorType> inner_types;
    for (Value output : inner.outputs) inner_types.push_back(body.type(output));
    std::vector<Literal> results = interpret_node(inner, inner_types, inputs);
    for (size_t i = 0; i < results.size(); ++i) {
      overflow(results[i]);
      values[static_cast<size_t>(inner.outputs[i].id)] = std::move(results[i]);
    }
  }
  std::vector<Literal> outputs;
  for (const Graph::Output& output : body.outputs())
    outputs.push_back(values[static_cast<size_t>(output.value.id)]);
  return outputs;
}

std::vector<Expectation> expect_region(const Graph& graph, const Node& node,
                                       const std::vector<const Literal*>& operands) {
  std::vector<TensorType> types;
  for (Value output : node.outputs) types.push_back(graph.type(output));
  std::vector<Expectation> result;
  for (Literal& value : interpret_region(node, types, operands))
    result.push_back({value, {}, true});
  for (Expectation& e : result) e.bound.resize(static_cast<size_t>(e.value.elements()), 0);
  PhiloxStream draws(graph_hash(*node.body));
  for (int repeat = 0; repeat < kPerturbations; ++repeat) {
    Node shaken = node;
    shaken.body = std::make_shared<const Graph>(perturbed(*node.body, draws, is_loop(node)));
    const std::vector<Literal> values = interpret_region(shaken, types, operands);
    for (size_t o = 0; o < values.size(); ++o)
      for (int64_t i = 0; i < values[o].elements(); ++i) {
        double& bound = result[o].bound[static_cast<size_t>(i)];
        const double distance = std::abs(values[o].at(i) - result[o].value.at(i));
        if (!values[o].floating() && distance > 0) bound = -1;
        if (!values[o].floating() || bound < 0) continue;
        // Near the edge of what the dtype holds: a rounding decides what overflows.
        if (std::isfinite(values[o].at(i)) != std::isfinite(result[o].value.at(i)))
          bound = -1;
        else
          bound = std::max(bound, std::isnan(distance) ? 0 : kPerturbationMargin * distance);
      }
  }
  for (Expectation& e : result)
    for (int64_t i = 0; i < e.value.elements(); ++i)
      if (e.bound[static_cast<size_t>(i)] >= 0 && e.value.floating())
        e.bound[static_cast<size_t>(i)] +=
            4 * dtype_epsilon(e.value.dtype()) * std::abs(e.value.at(i));
  return result;
}

std::vector<Expectation> expect_primitive(const Graph& graph, const Node& node,
                                          const std::vector<const Literal*>& operands) {
  std::vector<TensorType> types;
  for (Value output : node.outputs) types.push_back(graph.type(output));
  std::vector<std::vector<double>> magnitudes;
  const std::vector<Literal> values = interpret_node(node, types, operands, &magnitudes);
  std::vector<Expectation> result;
  for (size_t o = 0; o < values.size(); ++o) {
    Expectation e{values[o], std::vector<double>(static_cast<size_t>(values[o].elements()), 0)};
    e.any_order = node.op->is(Tag::reduction) || node.op->is(Tag::contraction);
    if (o < magnitudes.size()) e.largest_sum = magnitudes[o];
    if (values[o].floating()) {
      const double ulps = node.op->is(Tag::elementwise) ? scalar_op_ulps(node.op->scalar) : 1;
      const DType dtype = values[o].dtype();
      const double rounding = is_low_precision(dtype)
                                  ? dtype_epsilon(dtype) + ulps * compute_epsilon(dtype)
                                  : (ulps + 0.5) * dtype_epsilon(dtype);
      for (int64_t i = 0; i < values[o].elements(); ++i) {
        double& bound = e.bound[static_cast<size_t>(i)];
        bound = rounding * std::abs(values[o].at(i));
        if (o < magnitudes.size() && !magnitudes[o].empty())
          bound += compute_epsilon(dtype) * magnitudes[o][static_cast<size_t>(i)];
      }
    }
    result.push_back(std::move(e));
  }
  return result;
}

std::string compare(const Graph& graph, const Node& node, size_t output,
                    const Expectation& expected, const Literal& found) {
  const DType dtype = found.dtype();
  for (int64_t i = 0; i < found.elements(); ++i) {
    const double bound = expected.bound[static_cast<size_t>(i)];
    if (bound < 0) continue;
    const double want = expected.value.at(i);
    const double got = found.at(i);
    if (std::isnan(want) && std::isnan(got)) continue;
    if (want == got) continue;
    // The reference is not finite either: that is the model's own doing.
    if (expected.any_order && !std::isfinite(want) && !std::isfinite(got)) continue;
    if (is_floating(dtype) && !std::isfinite(got) && !expected.largest_sum.empty() &&
        expected.largest_sum[static_cast<size_t>(i)] >= dtype_largest(dtype))
      continue;
    // Beyond the largest finite value the kernel has infinity; below the smallest normal one it may
    // have a denormal or zero.
    if (is_floating(dtype) && std::isinf(got) && std::abs(want) + bound >= dtype_largest(dtype) &&
        std::signbit(want) == std::signbit(got))
      continue;
    if (std::abs(want - got) <= bound + dtype_smallest_normal(dtype)) continue;
    return fmt::format("output {} element {}: expected {:.17g}, found {:.17g}, bound {:.3g}\n{}",
                       output, i, want, got, bound, print_node(graph, node));
  }
  return "";
}

/// What a run keeps of its copies.
std::vector<Literal> rounded_copies_of(const Graph& graph, std::span<const Literal> inputs) {
  const std::optional<Graph> copying = deriving_graph(graph);
  if (!copying) return {};
  std::vector<Literal> values(static_cast<size_t>(copying->value_count()));
  for (const Graph::Input& input : copying->inputs())
    values[static_cast<size_t>(input.value.id)] =
        input.role == Role::derived ? Literal(copying->type(input.value))
                                    : inputs[static_cast<size_t>(graph.find_input(input.name))];
  // Rounded where the graph casts: what is widened behind that keeps the low dtype's values.
  for (const Node& node : copying->nodes()) {
    std::vector<TensorType> types;
    for (const Value output : node.outputs) types.push_back(copying->type(output));
    std::vector<const Literal*> operands;
    for (const Value input : node.inputs)
      operands.push_back(&values[static_cast<size_t>(input.id)]);
    std::vector<Literal> results = interpret_node(node, types, operands);
    for (size_t i = 0; i < results.size(); ++i) {
      results[i].round();
      values[static_cast<size_t>(node.outputs[i].id)] = std::move(results[i]);
    }
  }
  std::vector<Literal> copies;
  for (const Graph::Output& output : copying->outputs())
    copies.push_back(values[static_cast<size_t>(output.value.id)]);
  return copies;
}

Literal kept(State& state, const Graph& graph, const Graph::Input& input) {
  const TensorType& type = graph.type(input.value);
  const Address address = input.role == Role::derived
                              ? state.derived_address(state.add_derived(*input.derived, type))
                              : state.address(state.find(input.name));
  std::vector<std::byte> bytes(static_cast<size_t>(type.bytes()));
  state.device().read(address, bytes);
  return Literal::from_bytes(type, bytes.data());
}

}  // namespace

std::vector<Literal> run_on_device(const Graph& graph, std::span<const Literal> inputs,
                                   const std::shared_ptr<Device>& device,
                                   const CompileOptions& options) {
  State state(state_entries(graph), device);
  Program program = Program::compile(graph, state, options);
  std::vector<std::unique_ptr<void, Free>> memory;
  std::vector<const void*> batch;
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    const Graph::Input& input = graph.inputs()[i];
    if (input.role == Role::derived) continue;
    const std::vector<char> bytes = inputs[i].bytes();
    if (is_state(input.role)) {
      state.write(state.find(input.name), std::as_bytes(std::span(bytes)));
      continue;
    }
    memory.emplace_back(std::aligned_alloc(64, (bytes.size() + 64) / 64 * 64));
    if (!bytes.empty()) std::memcpy(memory.back().get(), bytes.data(), bytes.size());
    batch.push_back(memory.back().get());
  }
  program.run(batch);
  std::vector<Literal> outputs;
  for (size_t i = 0; i < graph.outputs().size(); ++i) {
    const Graph::Output& output = graph.outputs()[i];
    outputs.push_back(
        output.updates < 0
            ? Literal::from_bytes(graph.type(output.value),
                                  program.read_result<std::byte>(static_cast<int>(i)).data())
            : kept(state, graph, graph.inputs()[static_cast<size_t>(output.updates)]));
  }
  return outputs;
}

std::vector<Literal> copies_of(const Graph& graph, std::span<const Literal> inputs) {
  const std::optional<Graph> copying = deriving_graph(graph);
  if (!copying) return {};
  std::vector<Literal> operands;
  for (const Graph::Input& input : copying->inputs())
    operands.push_back(input.role == Role::derived
                           ? Literal(copying->type(input.value))
                           : inputs[static_cast<size_t>(graph.find_input(input.name))]);
  return interpret(*copying, operands);
}

Graph with_all_values(const Graph& graph) {
  Graph result = graph;
  for (const Node& node : graph.nodes())
    for (Value value : node.outputs) result.add_output(fmt::format("value {}", value.id), value);
  return result;
}

std::string first_difference(const Graph& graph, std::span<const Literal> inputs,
                             const std::shared_ptr<Device>& device, const CompileOptions& options,
                             const std::function<void(size_t done, size_t nodes)>& progress) {
  const Graph optimised =
      with_defined_rows(run_passes(graph, compile_target(*device, options), options.passes));
  CompileOptions as_is = options;
  for (const Pass& pass : pipeline())
    if (pass.optional) as_is.passes.disabled.insert(std::string(pass.name));
  const Graph visible = with_all_values(optimised);
  std::vector<Literal> rounded(inputs.begin(), inputs.end());
  for (Literal& input : rounded) input.round();
  for (Literal& copy : rounded_copies_of(optimised, rounded)) rounded.push_back(std::move(copy));
  const std::vector<Literal> outputs = run_on_device(visible, rounded, device, as_is);

  std::vector<const Literal*> values(static_cast<size_t>(visible.value_count()), nullptr);
  for (size_t i = 0; i < visible.inputs().size(); ++i)
    values[static_cast<size_t>(visible.inputs()[i].value.id)] = &rounded[i];
  for (size_t i = optimised.outputs().size(); i < visible.outputs().size(); ++i)
    values[static_cast<size_t>(visible.outputs()[i].value.id)] = &outputs[i];
  size_t done = 0;
  for (const Node& node : visible.nodes()) {
    if (progress) progress(done++, visible.nodes().size());
    std::vector<const Literal*> operands;
    for (Value input : node.inputs) operands.push_back(values[static_cast<size_t>(input.id)]);
    const std::vector<Expectation> expected = node.body ? expect_region(visible, node, operands)
                                                        : expect_primitive(visible, node, operands);
    for (size_t o = 0; o < node.outputs.size(); ++o) {
      std::string problem =
          compare(visible, node, o, expected[o], *values[static_cast<size_t>(node.outputs[o].id)]);
      if (!problem.empty()) return problem;
    }
  }
  return "";
}

}  // namespace fullbore
