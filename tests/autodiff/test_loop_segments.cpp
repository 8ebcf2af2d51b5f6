#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "fullbore/autodiff/backward.h"
#include "fullbore/base/error.h"
#include "fullbore/device/interpret.h"
#include "fullbore/ir/loop.h"
#include "fullbore/ir/op_def.h"
#include "fullbore/ir/print.h"
#include "fullbore/ir/verify.h"
#include "fullbore/passes/pass.h"
#include "fullbore/runtime/compile.h"
#include "tests/support/device.h"
#include "tests/support/gradcheck.h"
#include "tests/support/loop_programs.h"
#include "tests/support/program_check.h"
#include "tests/support/random_graph.h"

/// Loops in segments: the same bits as without, less memory, and no decision taken twice.
namespace fullbore {
namespace {

using testing_support::compare_bits;
using testing_support::cpu_device;

std::vector<bool> floating_inputs(const Graph& graph) {
  std::vector<bool> wanted;
  for (const Graph::Input& input : graph.inputs())
    wanted.push_back(is_floating(graph.type(input.value).dtype));
  return wanted;
}

Graph gradient_of(const Graph& graph) { return gradient_graph(graph, floating_inputs(graph)); }

std::vector<Literal> with_cotangents(const Graph& gradient, std::vector<Literal> inputs,
                                     uint64_t seed) {
  for (size_t i = inputs.size(); i < gradient.inputs().size(); ++i)
    inputs.push_back(random_literal(gradient.type(gradient.inputs()[i].value), seed, i));
  return inputs;
}

// Every form of loop in this many segments. A program of one iteration has one, and is left out.
std::vector<LoopProgram> segmented_programs() {
  std::vector<LoopProgram> programs;
  for (const LoopProgram& program : loop_programs())
    for (int64_t segments = 2; segments <= program.iterations; ++segments) {
      programs.push_back(program);
      programs.back().name += fmt::format("_in_{}", segments);
      programs.back().segments = segments;
    }
  return programs;
}

class LoopSegments : public ::testing::TestWithParam<LoopProgram> {
 protected:
  LoopSegments() { plain_.segments = 0; }

  LoopProgram plain_ = GetParam();
  const Graph in_segments_ = loop_program_graph(GetParam(), false);
  const std::vector<Literal> inputs_ = loop_program_inputs(GetParam(), 11);
};

TEST_P(LoopSegments, LeaveTheLoopAsItIs) {
  EXPECT_EQ(verify(in_segments_), "");
  EXPECT_EQ(compare_bits(interpret(in_segments_, inputs_),
                         interpret(loop_program_graph(plain_, false), inputs_)),
            "");
}

TEST_P(LoopSegments, LeaveTheGradientAsItIs) {
  const Graph gradient = gradient_of(in_segments_);
  EXPECT_EQ(verify(gradient), "");
  const std::vector<Literal> inputs = with_cotangents(gradient, inputs_, 3);
  const Graph plain = gradient_of(loop_program_graph(plain_, false));
  EXPECT_EQ(compare_bits(interpret(gradient, inputs), interpret(plain, inputs)), "")
      << print(gradient);
}

TEST_P(LoopSegments, LeaveTheGradientOfTheGradientAsItIs) {
  const Graph first = gradient_of(in_segments_);
  const Graph second = gradient_of(first);
  const Graph plain = gradient_of(gradient_of(loop_program_graph(plain_, false)));
  const std::vector<Literal> inputs =
      with_cotangents(second, with_cotangents(first, inputs_, 3), 4);
  EXPECT_EQ(compare_literals(interpret(second, inputs), interpret(plain, inputs), 1e-11), "");
}

TEST_P(LoopSegments, AgreeWithFiniteDifferences) {
  const GradcheckCase check{in_segments_, inputs_, floating_inputs(in_segments_)};
  EXPECT_EQ(gradcheck(check).problem, "");
}

TEST_P(LoopSegments, LeaveTheBitsOnTheProcessorAsTheyAre) {
  const Graph gradient = gradient_of(in_segments_);
  const Graph plain = gradient_of(loop_program_graph(plain_, false));
  const std::vector<Literal> inputs = with_cotangents(gradient, inputs_, 3);
  const auto run = [&](const Graph& graph, int threads) {
    CompileOptions options;
    // It takes sums of few rows out of a loop, in an order that the loop does not have.
    options.passes.disabled = {"batch_weight_gradients"};
    return testing_support::run_graph(graph, inputs, cpu_device(threads), options);
  };
  EXPECT_EQ(compare_bits(run(gradient, 2), run(plain, 1)), "");
}

INSTANTIATE_TEST_SUITE_P(EveryForm, LoopSegments, ::testing::ValuesIn(segmented_programs()),
                         [](const auto& each) { return each.param.name; });

// --- a gated recurrence with noise that stops by itself ----------------------------------------------

struct Gated {
  DType dtype = DType::f32;
  int64_t iterations = 13, segments = 0, rows = 64, width = 24;
  double least_move = 0;  ///< the loop ends where no element moves as far
  bool noisy = true;

  // Its last state and how many iterations there were, and the gradient of a sum of squares.
  Graph graph(bool with_gradient) const {
    GraphBuilder builder;
    const auto matrix = [&](const char* name, int64_t first) {
      return builder.input(name, Role::batch, {dtype, {first, width}});
    };
    const Tensor start = matrix("h", rows), reset = matrix("reset", width),
                 update = matrix("update", width), candidate = matrix("candidate", width);
    const Tensor seed = builder.input("seed", Role::batch, {DType::i64, {}});
    const LoopResult run =
        loop(builder, {start}, {}, {.iterations = iterations, .segments = segments},
             [&](const LoopBody& body) {
               const Tensor h = body.carried[0];
               const Tensor r = sigmoid(matmul(h, reset)), z = sigmoid(matmul(h, update));
               Tensor proposed = matmul(r * h, candidate);
               if (noisy) {
                 const RandomSource source{seed, seed, /*site=*/1, body.index};
                 proposed = proposed + 0.1 * random_normal(source, h.type());
               }
               const Tensor n = tanh(proposed);
               const Tensor next = (1.0 - z) * n + z * h;
               const Tensor furthest = reduce_max(abs(stop_gradient(next - h)), {0, 1});
               return IterationResults{.carried = {next}, .stop = less(furthest, least_move)};
             });
    builder.output("h", run.carried[0]);
    builder.output("executed", run.executed);
    if (!with_gradient) return builder.take();
    const Tensor loss = reduce_sum(run.carried[0] * run.carried[0], {0, 1});
    const std::vector<Tensor> wanted = {start, reset, update, candidate};
    for (Tensor each : gradient(loss, wanted)) builder.output("", each);
    return builder.take();
  }
  std::vector<Literal> inputs() const {
    std::vector<Literal> all;
    for (const int64_t first : {rows, width, width, width}) {
      all.push_back(random_literal({dtype, {first, width}}, 9, all.size()));
      for (double& each : all.back().reals()) each *= 0.3;
      all.back().round();
    }
    all.push_back(Literal::of({DType::i64, {}}, {7}));
    return all;
  }
};

// Where it stops: nowhere, within a segment, and after its first iteration.
const std::vector<std::pair<double, int64_t>> kStops = {{0, 13}, {0.22, 0}, {100, 1}};

TEST(GatedInSegments, HasTheSameBitsInAnyNumberOfThem) {
  for (DType dtype : {DType::f64, DType::f32})
    for (const auto& [least_move, executed] : kStops) {
      Gated gated{.dtype = dtype, .least_move = least_move};
      const std::vector<Literal> inputs = gated.inputs();
      const std::vector<Literal> exact = interpret(gated.graph(true), inputs);
      const std::vector<Literal> found =
          testing_support::run_graph(gated.graph(true), inputs, cpu_device(1), {});
      const int64_t made = exact[1].integers()[0];
      if (executed > 0)
        EXPECT_EQ(made, executed);
      else
        EXPECT_TRUE(made > 2 && made < 13) << made;
      for (const int64_t segments : {1, 2, 3, 4, 13, 50}) {
        gated.segments = segments;
        const Graph graph = gated.graph(true);
        EXPECT_EQ(compare_bits(exact, interpret(graph, inputs)), "") << segments;
        for (const int threads : {1, 4})
          EXPECT_EQ(compare_bits(
                        found, testing_support::run_graph(graph, inputs, cpu_device(threads), {})),
                    "")
              << segments << " segments on " << threads << " threads";
      }
    }
}

// In low precision too, what is computed again is what was computed.
TEST(GatedInSegments, HasTheSameBitsInLowPrecision) {
  for (DType precision : {DType::bf16, DType::f16}) {
    Gated gated;
    CompileOptions options;
    options.precision = precision;
    const auto run = [&](int threads) {
      return testing_support::run_graph(gated.graph(true), gated.inputs(), cpu_device(threads),
                                        options);
    };
    const std::vector<Literal> whole = run(1);
    for (const int64_t segments : {2, 4, 13}) {
      gated.segments = segments;
      EXPECT_EQ(compare_bits(whole, run(2)), "") << dtype_name(precision) << ", " << segments;
    }
  }
}

TEST(GatedInSegments, TakesLessMemoryForOneMoreForwardPass) {
  Gated gated{.iterations = 64, .width = 128, .noisy = false};
  const auto plan_of = [&](int64_t segments, bool with_gradient, const std::string& name) {
    gated.segments = segments;
    const std::shared_ptr<Device> device = open_device(name, 1);
    const std::unique_ptr<Compiler> compiler = device->compiler();
    Plan plan = compile_plan(gated.graph(with_gradient), *device, *compiler, {});
    compiler->finish();
    return plan;
  };
  for (const char* device : {"cpu", "null"}) {
    const Plan whole = plan_of(1, true, device), in_segments = plan_of(8, true, device);
    EXPECT_LE(static_cast<double>(in_segments.peak_bytes()),
              0.4 * static_cast<double>(whole.peak_bytes()))
        << device;
    EXPECT_LE(in_segments.flops, 1.35 * whole.flops) << device;
    EXPECT_GE(in_segments.flops, whole.flops + 0.9 * plan_of(1, false, device).flops) << device;
  }
}

// --- decisions ----------------------------------------------------------------------------------------

// Ops of a graph and all bodies within it that make an integer or truth value of floating ones.
std::vector<std::string> decisions(const Graph& graph) {
  std::vector<std::string> found;
  for (const Node& node : graph.nodes()) {
    if (node.body) {
      const std::vector<std::string> inside = decisions(*node.body);
      found.insert(found.end(), inside.begin(), inside.end());
      continue;
    }
    const auto floats = [&](Value value) { return is_floating(graph.type(value).dtype); };
    if (std::any_of(node.inputs.begin(), node.inputs.end(), floats) &&
        !std::all_of(node.outputs.begin(), node.outputs.end(), floats))
      found.emplace_back(node.op->name);
  }
  return found;
}

// Elements go on while they are small, in places that a sort gives them; a loop within decides as well.
Graph deciding(int64_t segments) {
  GraphBuilder builder;
  const Tensor start = builder.input("h", Role::batch, {DType::f64, {8}});
  const Tensor w = builder.input("w", Role::batch, {DType::f64, {8}});
  const Tensor none = full(builder, {DType::i64, {}}, 0);
  const LoopResult run =
      loop(builder, {start, none}, {}, {.iterations = 7, .segments = segments},
           [&](const LoopBody& body) {
             const Tensor h = body.carried[0];
             const Tensor alive = less(h, 0.7);
             const Tensor order = std::get<1>(sort(h));
             const Tensor moved = select(alive, sin(take_along_axis(h, order, 0)) + w, h * 0.5);
             const Tensor whole = cast(4.0 * h, DType::i64);
             const LoopResult inner =
                 loop(h.builder(), {moved}, {}, {.iterations = 3}, [&](const LoopBody& within) {
                   const Tensor x = within.carried[0];
                   return IterationResults{.carried = {select(greater(x, 0.2), x * w, cos(x))},
                                           .stop = greater(reduce_sum(x, {0}), 4.0)};
                 });
             const Tensor count =
                 body.carried[1] + inner.executed + reduce_sum(cast(alive, DType::i64), {0});
             return IterationResults{
                 .carried = {inner.carried[0] * (1.0 + 0.01 * cast(whole, DType::f64)), count},
                 .stop = greater(count, 40.0)};
           });
  const Tensor loss = reduce_sum(run.carried[0] * run.carried[0], {0});
  const std::vector<Tensor> wanted = {start, w};
  builder.output("executed", run.executed);
  builder.output("count", run.carried[1]);
  for (Tensor each : gradient(loss, wanted)) builder.output("", each);
  return builder.take();
}

TEST(DecisionsInSegments, AreTakenOnce) {
  // Of the sort, nobody reads the values.
  const Graph graph = run_pass("dead_code_elimination", deciding(3), {});
  std::vector<const Node*> loops;
  for (const Node& node : graph.nodes())
    if (is_loop(node)) loops.push_back(&node);
  ASSERT_EQ(loops.size(), 3U);  // the loop, the same with records, its gradient
  EXPECT_THAT(decisions(*loops[0]->body),
              ::testing::UnorderedElementsAre("less", "sort", "cast", "less", "less"));
  EXPECT_THAT(decisions(*loops[2]->body), ::testing::IsEmpty()) << print(graph);
}

TEST(DecisionsInSegments, LeaveTheBitsAsTheyAre) {
  std::vector<Literal> inputs = {random_literal({DType::f64, {8}}, 3, 0),
                                 random_literal({DType::f64, {8}}, 3, 1)};
  const std::vector<Literal> expected = interpret(deciding(0), inputs);
  EXPECT_GT(expected[0].integers()[0], 2);
  const std::vector<Literal> found =
      testing_support::run_graph(deciding(0), inputs, cpu_device(1), {});
  for (const int64_t segments : {2, 3, 4, 7}) {
    EXPECT_EQ(compare_bits(expected, interpret(deciding(segments), inputs)), "") << segments;
    EXPECT_EQ(compare_bits(
                  found, testing_support::run_graph(deciding(segments), inputs, cpu_device(3), {})),
              "")
        << segments;
  }
}

// --- random graphs ------------------------------------------------------------------------------------

// The graph with the loops of its own, those that carry something, in segments.
Graph cut(const Graph& graph, int64_t segments, int& loops) {
  GraphBuilder builder(graph.name());
  std::vector<Tensor> values(static_cast<size_t>(graph.value_count()));
  const auto value = [&](Value of) -> Tensor& { return values[static_cast<size_t>(of.id)]; };
  for (const Graph::Input& input : graph.inputs())
    value(input.value) = builder.input_like(input, graph.type(input.value));
  for (const Node& node : graph.nodes()) {
    std::vector<Tensor> operands, results;
    for (Value input : node.inputs) operands.push_back(value(input));
    if (is_loop(node) && LoopShape(node).carried > 0) {
      ++loops;
      const LoopShape shape(node);
      const auto first = operands.begin() + shape.first_carried();
      const auto rows = operands.begin() + shape.first_sliced();
      const auto captured = operands.begin() + shape.first_captured();
      const auto write = [&](const LoopBody& body) {
        GraphBuilder& inner = body.index.builder();
        std::vector<Tensor> inputs = {body.index};
        inputs.insert(inputs.end(), body.carried.begin(), body.carried.end());
        inputs.insert(inputs.end(), body.slices.begin(), body.slices.end());
        for (auto each = captured; each != operands.end(); ++each)
          inputs.push_back(inner.import(*each));
        const std::vector<Tensor> made = inline_graph(inner, *node.body, inputs);
        IterationResults iteration;
        const auto stacked = made.begin() + shape.carried;
        iteration.carried.assign(made.begin(), stacked);
        iteration.stacked.assign(stacked, stacked + shape.stacked);
        if (shape.until) iteration.stop = made.back();
        return iteration;
      };
      const LoopOptions options{.iterations = shape.iterations,
                                .reverse = shape.reverse,
                                .count = shape.counted ? operands[0] : Tensor{},
                                .segments = segments};
      const LoopResult result = loop(builder, {first, rows}, {rows, captured}, options, write);
      results = result.carried;
      results.insert(results.end(), result.stacked.begin(), result.stacked.end());
      if (shape.until) results.push_back(result.executed);
    } else {
      results = builder.emit_like(node, operands);
    }
    for (size_t i = 0; i < results.size(); ++i) value(node.outputs[i]) = results[i];
  }
  for (const Graph::Output& output : graph.outputs())
    builder.output(output.name, value(output.value), output.updates);
  return builder.take();
}

// Has an op of it no gradient, or a loop segments as it was drawn?
bool is_unfit(const Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [](const Node& node) {
    return node.op->name == "quantized_linear" || (is_loop(node) && LoopShape(node).segments > 1) ||
           (node.body && is_unfit(*node.body));
  });
}

TEST(RandomGraphsInSegments, HaveTheSameBits) {
  int loops = 0;
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    const RandomGraph random = random_graph(seed, {.choices = 12, .gradients = false});
    int found = 0;
    if (cut(random.graph, 0, found); found == 0 || is_unfit(random.graph)) continue;
    const Graph whole = gradient_of(random.graph);
    const std::vector<Literal> inputs = with_cotangents(whole, random.inputs, seed);
    const std::vector<Literal> expected = interpret(whole, inputs);
    for (const int64_t segments : {2, 3, 4}) {
      const Graph gradient = gradient_of(cut(random.graph, segments, loops));
      EXPECT_EQ(compare_bits(expected, interpret(gradient, inputs)), "")
          << "seed " << seed << ", " << segments << " segments";
    }
  }
  EXPECT_GT(loops, 300);
}

TEST(LoopSegmentsRules, NameWhatMakesNoSense) {
  GraphBuilder builder;
  const Tensor x = builder.input("x", Role::batch, {DType::f64, {4}});
  const auto error = [&](LoopOptions options) -> std::string {
    try {
      loop(builder, {}, {x}, options, [](const LoopBody& body) {
        return IterationResults{{}, {body.slices[0]}};
      });
    } catch (const UsageError& refused) {
      return refused.what();
    }
    return "";
  };
  EXPECT_THAT(error({.iterations = 4, .segments = -1}),
              ::testing::HasSubstr("segments cannot be -1"));
  EXPECT_THAT(error({.iterations = 4, .parallel = true, .segments = 2}),
              ::testing::HasSubstr("parallel or segments, not both"));
  EXPECT_THAT(error({.iterations = 5, .segments = 2}),
              ::testing::HasSubstr("no row for each of 5 iterations"));
  EXPECT_EQ(error({.iterations = 4, .segments = 9}), "");
}

}  // namespace
}  // namespace fullbore
