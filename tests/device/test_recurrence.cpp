#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "../support/comparison.h"
#include "../support/evaluate.h"
#include "../support/gradcheck.h"
#include "../support/samples.h"
#include "fullbore/autodiff/backward.h"
#include "fullbore/base/philox.h"
#include "fullbore/device/cpu/recurrence/recurrence.h"
#include "fullbore/device/interpret.h"
#include "fullbore/ops/ops.h"
#include "fullbore/ops/recurrence.h"
#include "fullbore/ops/recurrent.h"
#include "fullbore/passes/canonicalize/dead_code_elimination.h"
#include "fullbore/passes/canonicalize/expand_composites.h"
#include "fullbore/runtime/compare_nodes.h"
#include "fullbore/runtime/program.h"
#include "kernel_runner.h"
#include "tests/support/device.h"

/// The parts of a linear recurrence against their references, on every vector unit of this processor.
namespace fullbore {
namespace {

using testing_support::cpu_device;

using cpu::MatmulUnits;
using testing_support::compare;
using testing_support::expect;
using testing_support::Expected;
using testing_support::run_kernel_in_all_ways;
using testing_support::RunResult;

struct Part {
  const char* op;
  std::unique_ptr<Kernel> (*make)(const KernelRequest& request, const cpu::MatmulUnits& units);
};
const Part kParts[] = {{"recurrence_states", cpu::make_recurrence_states},
                       {"recurrence_outputs", cpu::make_recurrence_outputs},
                       {"recurrence_gradient", cpu::make_recurrence_gradient}};

struct Case {
  const char* why;
  int64_t batch, tokens, heads, groups, keys, values, chunk;
  bool scalar_decay, inclusive, resets;
  double mean, deviation;  ///< of the logarithm of minus the log-decay
};
const Case kCases[] = {
    {"two streams of RWKV-6", 2, 150, 2, 2, 32, 32, 64, false, false, false, -3, 1},
    {"decays of -0.4: a chunk is one block", 1, 130, 2, 2, 32, 32, 64, false, false, false, -1,
     0.3},
    {"decays of -1: blocks of two tiles", 1, 120, 2, 2, 32, 32, 64, false, false, true, 0, 0.2},
    {"of strong decays: some blocks are far", 1, 130, 2, 2, 32, 32, 64, false, false, false, 1, 2},
    {"of stronger ones still, resets", 2, 70, 1, 1, 16, 24, 33, false, false, true, 3, 3},
    {"Mamba-2", 1, 150, 4, 1, 64, 64, 64, true, true, false, -2, 1},
    {"Mamba-2 in two groups, resets", 2, 90, 4, 2, 19, 33, 40, true, true, true, 0, 2},
    {"a decay for each key, own value read", 1, 100, 4, 2, 16, 48, 48, false, true, true, -1, 2},
    {"one decay and a bonus", 1, 60, 2, 1, 24, 16, 32, true, false, true, -1, 1},
    {"many chunks of one token", 1, 20, 2, 2, 8, 8, 1, false, false, true, -1, 1},
    {"a token of RWKV-6", 3, 1, 2, 2, 32, 32, 64, false, false, false, -3, 1},
    {"a token of Mamba-2", 2, 1, 4, 1, 64, 64, 64, true, true, false, -2, 1},
    {"tokens one by one, odd extents, resets", 2, 14, 4, 2, 19, 77, 1, true, true, true, 0, 1},
    {"tokens one by one, own value read", 1, 13, 2, 2, 16, 21, 1, false, true, true, -1, 2},
};

/// What is special about a case's node.
struct Variation {
  bool reverse = false;
  /// Is the state before the first chunk 0, and the cotangent of the one behind the last?
  bool empty_ends = false;
  bool last_is_read = true;  ///< of states: the one behind all chunks
  /// Of outputs and gradients: does the graph say that states and their cotangents are 0? Their memory is
  /// full of NaN then.
  bool known_zeros = false;
};

/// The node of one part and what the oracle says of it.
class PartCase {
 public:
  PartCase(const Part& part, const Case& c, const Variation& variation, DType dtype) : part_(part) {
    const Shape keys{c.batch, c.tokens, c.groups, c.keys};
    const Shape values{c.batch, c.tokens, c.heads, c.values};
    const int64_t chunks = (c.tokens + c.chunk - 1) / c.chunk;
    const Shape states{chunks, c.batch, c.heads, c.keys, c.values};
    const bool states_only = part.op == kParts[0].op, gradient = part.op == kParts[2].op;
    if (!states_only) add({dtype, keys});
    add({dtype, keys});
    add({dtype, values});
    if (gradient) add({dtype, values});
    add({DType::f32, {c.batch, c.tokens, c.heads, c.scalar_decay ? 1 : c.keys}});
    for (double& g : literals_.back().reals()) g = -std::exp(c.mean + c.deviation * g);
    literals_.back().round();
    if (!states_only && !c.inclusive) add({DType::f32, {c.heads, c.keys}});
    const size_t first_state = literals_.size();
    add({DType::f32, states_only ? states.without(0) : states});
    const auto of_a_chunk = static_cast<ptrdiff_t>(states.without(0).elements());
    if (variation.empty_ends) std::fill_n(literals_.back().reals().begin(), of_a_chunk, 0.0);
    if (gradient) add({DType::f32, states});
    if (gradient && variation.empty_ends)
      std::fill_n(literals_.back().reals().end() - of_a_chunk, of_a_chunk, 0.0);
    const size_t behind_states = literals_.size();
    if (c.resets) {
      std::vector<double> flags;
      for (int64_t i = 0; i < c.batch * c.tokens; ++i) flags.push_back(i % 23 == 11 ? 1 : 0);
      literals_.push_back(integers(DType::boolean, {c.batch, c.tokens}, flags));
    }
    Attributes attributes = recurrence_attributes(c.chunk, c.inclusive, c.resets);
    if (states_only) attributes.set("reverse", variation.reverse);
    std::vector<Value> inputs;
    memory_ = literals_;
    for (size_t i = 0; i < literals_.size(); ++i) {
      if (variation.known_zeros && i >= first_state && i < behind_states) {
        std::ranges::fill(literals_[i].reals(), 0.0);
        std::ranges::fill(memory_[i].reals(), std::nan(""));
        inputs.push_back(add_zeros(literals_[i].type()));
      } else {
        inputs.push_back(graph_.add_input(fmt::format("x{}", i), Role::batch, literals_[i].type()));
      }
    }
    graph_.add_node(get_op(part.op), inputs, attributes);
    for (size_t o = 0; o < node().outputs.size(); ++o)
      if (variation.last_is_read || o == 0)
        graph_.add_output(fmt::format("y{}", o), node().outputs[o]);
    expected_ = expect(graph_, node(), pointers(literals_));
  }

  /// Of the first results. Made for one worker, a kernel may have fewer items, of the same bits.
  std::string check(const MatmulUnits& units, size_t results = 5) const {
    const auto kernel = part_.make(KernelRequest(graph_, node(), 3), units);
    const RunResult result = run_kernel_in_all_ways(*kernel, pointers(memory_), types());
    const RunResult alone = run_kernel_in_all_ways(
        *part_.make(KernelRequest(graph_, node(), 1), units), pointers(memory_), types());
    std::string problem = result.problem + alone.problem;
    if (problem.empty() && alone.outputs != result.outputs) problem = "one worker has other bits";
    for (size_t o = 0; o < std::min(results, expected_.size()) && problem.empty(); ++o)
      problem = compare(expected_[o], Literal::from_bytes(types()[o], result.outputs[o].data()), o);
    return problem.empty() ? "" : kernel->description() + ": " + problem;
  }
  bool writes_last_state(const MatmulUnits& units) const {
    const KernelRequest request(graph_, node(), 3);
    const RunResult result =
        run_kernel_in_all_ways(*part_.make(request, units), pointers(memory_), types());
    return compare(expected_[1], Literal::from_bytes(types()[1], result.outputs[1].data()), 1)
        .empty();
  }
  /// The rms of each result's errors over the rms of the result.
  std::vector<double> errors(const MatmulUnits& units) const {
    const KernelRequest request(graph_, node(), 3);
    const RunResult result =
        run_kernel_in_all_ways(*part_.make(request, units), pointers(memory_), types());
    std::vector<double> errors;
    for (size_t o = 0; o < expected_.size(); ++o) {
      const Literal got = Literal::from_bytes(types()[o], result.outputs[o].data());
      double squares = 0, right = 0;
      for (int64_t i = 0; i < got.elements(); ++i) {
        squares += std::pow(got.at(i) - expected_[o].value.at(i), 2);
        right += std::pow(expected_[o].value.at(i), 2);
      }
      errors.push_back(std::sqrt(squares / right));
    }
    return errors;
  }
  /// Would every result be found wrong if its largest element were an eighth larger? Cotangents of decays
  /// are differences of such large sums that, of decays shared by all keys and of bf16 factors, their bound
  /// says little of one: they are looked at below.
  bool notices_changes() const {
    const bool rounded = literals_[0].dtype() == DType::bf16;
    for (size_t o = 0; o < expected_.size(); ++o) {
      if (o == 3 && (rounded || expected_[o].value.shape()[3] == 1)) continue;
      Literal changed = expected_[o].value;
      changed.round();
      int64_t largest = 0;
      for (int64_t i = 0; i < changed.elements(); ++i)
        if (std::abs(changed.at(i)) > std::abs(changed.at(largest))) largest = i;
      changed.put(largest, changed.at(largest) * 1.125);
      if (compare(expected_[o], changed, o).empty()) return false;
    }
    return true;
  }

 private:
  void add(const TensorType& type) {
    literals_.push_back(random_literal(type, 31, literals_.size()));
    literals_.back().round();
  }
  Value add_zeros(const TensorType& type) {
    const Attributes zero{{"dtype", type.dtype},
                          {"shape", std::vector<int64_t>{}},
                          {"values", std::vector<double>{0}}};
    const Value scalar = graph_.add_node(get_op("constant"), {}, zero).outputs[0];
    return graph_.add_node(get_op("broadcast_to"), {scalar}, {{"shape", type.shape.dims()}})
        .outputs[0];
  }
  const Node& node() const { return graph_.nodes().back(); }
  static std::vector<const Literal*> pointers(const std::vector<Literal>& literals) {
    std::vector<const Literal*> result;
    for (const Literal& literal : literals) result.push_back(&literal);
    return result;
  }
  std::vector<TensorType> types() const {
    std::vector<TensorType> result;
    for (Value output : node().outputs) result.push_back(graph_.type(output));
    return result;
  }

  const Part& part_;
  Graph graph_;
  std::vector<Literal> literals_;  ///< operands as the oracle has them
  std::vector<Literal> memory_;    ///< and as the kernel finds them
  std::vector<Expected> expected_;
};

// Operands of 16 bits differ only in how they are read and written, and where they are paired.
std::vector<MatmulUnits> units_of_this_processor(DType dtype) {
  std::vector<MatmulUnits> units;
  for (const VectorUnit unit : {VectorUnit::baseline, VectorUnit::avx2, VectorUnit::avx512})
    if (unit <= this_processor().vector_unit) units.push_back({unit, false});
  if (dtype != DType::f32) units.erase(units.begin(), units.end() - 1);
  if (const MatmulUnits all = MatmulUnits::of_this_processor(); all.vnni(dtype)) {
    units.push_back({all.vector_unit, true});
    if (all.amx_bf16) units.push_back(all);
  }
  return units;
}

class RecurrenceKernels : public ::testing::TestWithParam<DType> {};

TEST_P(RecurrenceKernels, AgreeWithTheReference) {
  for (const Part& part : kParts)
    for (const Case& c : kCases)
      for (const bool reverse : {false, true}) {
        if (reverse && part.op != kParts[0].op) continue;
        SCOPED_TRACE(fmt::format("{}{}: {}", part.op, reverse ? " reverse" : "", c.why));
        const PartCase call(part, c, {.reverse = reverse}, GetParam());
        for (const MatmulUnits& units : units_of_this_processor(GetParam()))
          EXPECT_EQ(call.check(units), "");
        // Where the bound of strong decays' cotangents is wide, it says nothing of one element.
        EXPECT_TRUE(c.mean > 0 || call.notices_changes());
      }
}

TEST_P(RecurrenceKernels, AgreeWhereNothingComesFromBeforeOrIsAskedForBehind) {
  for (const Part& part : kParts)
    for (const Case& c : kCases) {
      SCOPED_TRACE(fmt::format("{}: {}", part.op, c.why));
      const PartCase call(part, c, {.empty_ends = true}, GetParam());
      for (const MatmulUnits& units : units_of_this_processor(GetParam()))
        EXPECT_EQ(call.check(units), "");
    }
}

TEST_P(RecurrenceKernels, DoNotLookAtStatesThatAreKnownToBeZero) {
  for (const Part& part : {kParts[1], kParts[2]})
    for (const Case& c : kCases) {
      if (c.chunk == 1 || c.tokens == 1) continue;  // another kernel's
      SCOPED_TRACE(fmt::format("{}: {}", part.op, c.why));
      const PartCase call(part, c, {.known_zeros = true}, GetParam());
      for (const MatmulUnits& units : units_of_this_processor(GetParam()))
        EXPECT_EQ(call.check(units), "");
    }
}

// Of one chunk or of many: a kernel that leaves out the last step still makes all states before it.
TEST_P(RecurrenceKernels, LeaveOutALastStateThatNobodyReads) {
  for (const Case& c : kCases)
    for (const bool reverse : {false, true}) {
      SCOPED_TRACE(fmt::format("{}{}", reverse ? "reverse: " : "", c.why));
      const PartCase call(kParts[0], c, {.reverse = reverse, .last_is_read = false}, GetParam());
      for (const MatmulUnits& units : units_of_this_processor(GetParam())) {
        EXPECT_EQ(call.check(units, 1), "");
        // Blocks of one token are another kernel's, which makes it nevertheless.
        const bool in_chunks = c.chunk > 1 && c.tokens > 1;
        EXPECT_EQ(call.writes_last_state(units), !in_chunks);
      }
    }
}

TEST(RecurrenceVnni, OfVnniPairsAreAsExactAsTheirOperands) {
  for (const Part& part : kParts)
    for (const Case& c : kCases) {
      SCOPED_TRACE(fmt::format("{}: {}", part.op, c.why));
      const PartCase call(part, c, {}, DType::bf16);
      for (const MatmulUnits& units : units_of_this_processor(DType::bf16)) {
        // Roundings of results alone leave a quarter of an epsilon.
        const double much = dtype_epsilon(DType::bf16) / (units.avx512_bf16 ? 1 : 3);
        for (const double error : call.errors(units)) EXPECT_LT(error, much);
      }
    }
}

INSTANTIATE_TEST_SUITE_P(All, RecurrenceKernels,
                         ::testing::Values(DType::f32, DType::bf16, DType::f16),
                         [](const auto& dtype) { return std::string(dtype_name(dtype.param)); });

// --- whole recurrences on the cpu, in f32 ------------------------------------------------------------

double relative_error(const Literal& a, const Literal& b) {
  double error = 0, squares = 0;
  for (int64_t i = 0; i < a.elements(); ++i) {
    error = std::max(error, std::abs(a.at(i) - b.at(i)));
    squares += b.at(i) * b.at(i);
  }
  return error / std::sqrt(squares / static_cast<double>(a.elements()));
}

// Of 256 tokens: the largest errors over the rms of what is right, which is made in double by the op's
// decomposition into chunks of one token.
struct Errors {
  double results = 0;     ///< y and the last state
  double cotangents = 0;  ///< of all operands
};
Errors errors_in_f32(bool mamba, double mean, double deviation, int64_t chunk) {
  constexpr int64_t kTokens = 256;
  const int64_t width = mamba ? 64 : 32;
  std::vector<Literal> operands;
  const auto add = [&](Shape shape) {
    operands.push_back(random_literal({DType::f32, std::move(shape)}, 5, operands.size()));
  };
  for (int i = 0; i < 3; ++i) add({1, kTokens, 2, width});
  add({1, kTokens, 2, mamba ? 1 : width});
  PhiloxStream draws(3);
  for (double& g : operands[3].reals())
    // Of Mamba-2: A in [-16, -1] and dt in [0.001, 0.1].
    g = mamba ? -draws.uniform(1, 16) * std::pow(10, draws.uniform(-3, -1))
              : -std::exp(mean + deviation * g);
  if (!mamba) add({2, width});
  add({1, 2, width, width});
  const size_t count = operands.size();
  add({1, kTokens, 2, width});
  add({1, 2, width, width});
  for (Literal& operand : operands) operand.round();

  const auto graph_of = [&](DType dtype, int64_t tokens_of_chunk) {
    GraphBuilder builder;
    std::vector<Tensor> x;
    for (const Literal& operand : operands)
      x.push_back(
          builder.input(fmt::format("x{}", x.size()), Role::batch, {dtype, operand.shape()}));
    const std::vector<Tensor> inputs(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(count));
    std::vector<Tensor> made =
        builder.emit(get_op("linear_recurrence"), inputs,
                     recurrence_attributes(tokens_of_chunk, mamba, false), {});
    const std::vector<Tensor> cotangents(x.end() - 2, x.end());
    for (const Tensor& each : backward(builder, made, cotangents, inputs)) made.push_back(each);
    for (const Tensor& each : made) builder.output(fmt::format("y{}", each.value().id), each);
    return builder.take();
  };
  std::vector<Literal> wide;
  for (const Literal& operand : operands) wide.push_back(reals(operand.shape(), operand.reals()));
  const std::vector<Literal> expected = interpret(graph_of(DType::f64, 1), wide);
  const std::shared_ptr<Device> device = cpu_device(2);
  const std::vector<Literal> got = run_on_device(graph_of(DType::f32, chunk), operands, device, {});
  Errors errors;
  for (size_t i = 0; i < got.size(); ++i) {
    double& largest = i < 2 ? errors.results : errors.cotangents;
    largest = std::max(largest, relative_error(got[i], expected[i]));
  }
  return errors;
}

// How many recurrence_states y and the operands' cotangents need, of y alone or of the last state too.
int64_t states_made(int64_t tokens, bool last_is_read) {
  GraphBuilder builder;
  std::vector<Tensor> x;
  const auto add = [&](Shape shape) {
    x.push_back(builder.input(fmt::format("x{}", x.size()), Role::batch, {DType::f32, shape}));
  };
  for (int i = 0; i < 3; ++i) add({1, tokens, 2, 16});
  add({1, tokens, 2, 1});
  const Tensor initial = full(builder, {DType::f32, {1, 2, 16, 16}}, 0);
  const std::vector<Tensor> made = builder.emit(
      get_op("linear_recurrence"), std::vector<Tensor>{x[0], x[1], x[2], x[3], initial},
      recurrence_attributes(64, true, false), {});
  std::vector<Tensor> results = backward(builder, std::vector{made[0]}, std::vector{x[2]}, x);
  results.push_back(made[0]);
  if (last_is_read) results.push_back(made[1]);
  for (const Tensor& each : results) builder.output(fmt::format("y{}", each.value().id), each);
  const Target target = open_device("cpu")->target();
  const Graph graph = dead_code_elimination(expand_composites(builder.take(), target), target);
  return std::ranges::count_if(
      graph.nodes(), [](const Node& node) { return node.op->name == "recurrence_states"; });
}

TEST(Recurrences, OfOneChunkMakeNoStatesThatNobodyReads) {
  EXPECT_EQ(states_made(64, false), 0);
  EXPECT_EQ(states_made(64, true), 1);
  EXPECT_GE(states_made(65, false), 2);  // of y and, in reverse, of its cotangent
}

TEST(Recurrences, InF32AreAsExactAsTheirChunksAllow) {
  // On their way to a cotangent numbers are multiplied by decays and summed twice.
  const auto check = [](const Errors& errors, double bound) {
    EXPECT_LE(errors.results, bound);
    EXPECT_LE(errors.cotangents, 2 * bound);
  };
  for (const int64_t chunk : {16, 32, 64}) {
    SCOPED_TRACE(chunk);
    check(errors_in_f32(false, 0, 1, chunk), 5e-5);
    check(errors_in_f32(false, 2, 3, chunk), 3e-4);
  }
  for (const int64_t chunk : {16, 64}) check(errors_in_f32(true, 0, 0, chunk), 1e-4);
  check(errors_in_f32(true, 0, 0, 256), 5e-4);
}

}  // namespace
}  // namespace fullbore
