#include "fullbore/ops/loop_samples.h"

#include <functional>

#include "fullbore/base/check.h"
#include "fullbore/ops/compose.h"

namespace fullbore {
namespace {

const SourceLoc kNowhere{};

// A sample of the one loop that `write` traces over inputs filled as `operands` says. The loop takes
// them in its own order, so each operand keeps the fill of the input that it is.
Sample traced(std::string why, const std::vector<SampleInput>& operands,
              const std::function<void(GraphBuilder&, const std::vector<Tensor>&)>& write) {
  GraphBuilder builder("sample");
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < operands.size(); ++i)
    inputs.push_back(builder.input("x" + std::to_string(i), Role::batch, operands[i].type));
  write(builder, inputs);
  const Graph graph = builder.take();
  const Node& node = graph.nodes().back();
  Sample sample{
      .why = std::move(why), .inputs = {}, .attributes = node.attributes, .body = node.body};
  for (Value input : node.inputs) {
    FB_CHECK(graph.producer(input) < 0, "an operand of the sample '{}' is computed", sample.why);
    sample.inputs.push_back(operands[static_cast<size_t>(input.id)]);
  }
  return sample;
}

SampleInput normal(Shape shape) { return SampleInput::normal({DType::f32, std::move(shape)}); }
SampleInput count(double value) { return SampleInput::given({DType::i64, {}}, {value}).constant(); }

// h' = tanh(h + x[t]), y[t] = h' * w: a recurrence with everything that a loop may have.
void recurrence(GraphBuilder& builder, Tensor h, Tensor x, Tensor w, LoopOptions options) {
  loop(
      builder, {h}, {x}, options,
      [&](const LoopBody& body) {
        const Tensor next = tanh(add(body.carried[0], body.slices[0]), kNowhere);
        return IterationResults{.carried = {next}, .stacked = {mul(next, w)}};
      },
      kNowhere);
}

Sample recurrence_sample(std::string why, int64_t iterations, bool reverse) {
  return traced(std::move(why), {normal({3}), normal({iterations, 3}), normal({3})},
                [&](GraphBuilder& builder, const std::vector<Tensor>& in) {
                  recurrence(builder, in[0], in[1], in[2],
                             {.iterations = iterations, .reverse = reverse});
                });
}

Sample counted_sample(std::string why, double made, bool reverse) {
  return traced(std::move(why), {normal({3}), normal({4, 3}), normal({3}), count(made)},
                [&](GraphBuilder& builder, const std::vector<Tensor>& in) {
                  recurrence(builder, in[0], in[1], in[2],
                             {.iterations = 4, .reverse = reverse, .count = in[3]});
                });
}

// Doubles x until its sum exceeds the limit: how often depends on the values alone.
Sample until_sample(std::string why, double first, double limit, Tensor LoopOptions::*option,
                    double made) {
  std::vector<SampleInput> operands = {SampleInput::given({DType::f32, {2}}, {first, first / 2}),
                                       SampleInput::given({DType::f32, {}}, {limit}).constant()};
  if (option) operands.push_back(count(made));
  Sample sample =
      traced(std::move(why), operands, [&](GraphBuilder& builder, const std::vector<Tensor>& in) {
        LoopOptions options{.iterations = 5};
        if (option) options.*option = in[2];
        loop(
            builder, {in[0]}, {}, options,
            [&](const LoopBody& body) {
              const Tensor next = mul(body.carried[0], 1.75);
              return IterationResults{
                  .carried = {next},
                  .stacked = {body.carried[0], body.index},
                  .stop = greater(reduce_sum(next, {0}, false, kNowhere), in[1])};
            },
            kNowhere);
      });
  return sample;
}

// h' = tanh(h W + x[t] U): a matrix carried through matmuls, as recurrent layers do.
Sample matrix_sample() {
  return traced("a recurrent layer",
                {normal({2, 4}), normal({3, 2, 3}), normal({4, 4}), normal({3, 4})},
                [](GraphBuilder& builder, const std::vector<Tensor>& in) {
                  loop(
                      builder, {in[0]}, {in[1]}, {.iterations = 3},
                      [&](const LoopBody& body) {
                        const Tensor h = tanh(add(matmul(body.carried[0], in[2], {}, kNowhere),
                                                  matmul(body.slices[0], in[3], {}, kNowhere)),
                                              kNowhere);
                        return IterationResults{.carried = {h}, .stacked = {reduce_sum(h, {1})}};
                      },
                      kNowhere);
                });
}

Sample swap_sample() {
  return traced("carried values that change places", {normal({2}), normal({2})},
                [](GraphBuilder& builder, const std::vector<Tensor>& in) {
                  loop(
                      builder, {in[0], in[1]}, {}, {.iterations = 3},
                      [](const LoopBody& body) {
                        return IterationResults{
                            .carried = {body.carried[1], mul(body.carried[0], body.carried[1])}};
                      },
                      kNowhere);
                });
}

// The carried value is replaced by what does not depend on it, or not changed at all.
Sample constant_sample() {
  return traced("a carried value that is kept, one that is replaced by a constant",
                {normal({2}), normal({2}), normal({2})},
                [](GraphBuilder& builder, const std::vector<Tensor>& in) {
                  loop(
                      builder, {in[0], in[1]}, {}, {.iterations = 2},
                      [&](const LoopBody& body) {
                        return IterationResults{.carried = {body.carried[0], in[2]},
                                                .stacked = {mul(body.carried[1], body.carried[0])}};
                      },
                      kNowhere);
                });
}

Sample nested_sample() {
  return traced(
      "a loop within a loop", {normal({2}), normal({3, 2}), normal({2})},
      [](GraphBuilder& builder, const std::vector<Tensor>& in) {
        loop(
            builder, {in[0]}, {in[1]}, {.iterations = 3},
            [&](const LoopBody& outer) {
              const LoopResult inner = loop(
                  outer.index.builder(), {outer.carried[0]}, {}, {.iterations = 2},
                  [&](const LoopBody& body) {
                    return IterationResults{
                        .carried = {
                            tanh(add(mul(body.carried[0], in[2]), outer.slices[0]), kNowhere)}};
                  },
                  kNowhere);
              return IterationResults{.carried = inner.carried, .stacked = {inner.carried[0]}};
            },
            kNowhere);
      });
}

Sample indexed_sample() {
  return traced(
      "rows found by the index", {normal({}), normal({4, 3})},
      [](GraphBuilder& builder, const std::vector<Tensor>& in) {
        loop(
            builder, {in[0]}, {}, {.iterations = 4},
            [&](const LoopBody& body) {
              const Tensor row = dynamic_slice(in[1], body.index, 0, 1, kNowhere);
              return IterationResults{.carried = {add(mul(body.carried[0], 0.5),
                                                      reduce_sum(row, {0, 1}, false, kNowhere))}};
            },
            kNowhere);
      });
}

// Each iteration a recurrence of its own: a scan output of results and one of sums.
Sample parallel_sample() {
  return traced("iterations side by side", {normal({5, 4, 3}), normal({3})},
                [](GraphBuilder& builder, const std::vector<Tensor>& in) {
                  loop(
                      builder, {}, {in[0]}, {.iterations = 5, .parallel = true},
                      [&](const LoopBody& outer) {
                        const Tensor start = mul(in[1], cast(outer.index, DType::f32, kNowhere));
                        const LoopResult inner = loop(
                            outer.index.builder(), {start}, {outer.slices[0]}, {.iterations = 4},
                            [&](const LoopBody& body) {
                              const Tensor h =
                                  tanh(add(mul(body.carried[0], in[1]), body.slices[0]), kNowhere);
                              return IterationResults{.carried = {h}};
                            },
                            kNowhere);
                        return IterationResults{
                            .carried = {},
                            .stacked = {inner.carried[0], reduce_sum(outer.slices[0], {0})}};
                      },
                      kNowhere);
                });
}

// Four iterations in two segments of two: the gradient computes the inside again.
Sample segmented_sample() {
  return traced(
      "iterations in segments", {normal({3}), normal({3})},
      [](GraphBuilder& builder, const std::vector<Tensor>& in) {
        loop(
            builder, {in[0]}, {}, {.iterations = 4, .segments = 2},
            [&](const LoopBody& body) {
              return IterationResults{.carried = {tanh(add(body.carried[0], in[1]), kNowhere)}};
            },
            kNowhere);
      });
}

}  // namespace

std::vector<Sample> loop_samples() {
  return {
      recurrence_sample("a recurrence: carried, sliced, captured, stacked", 4, false),
      recurrence_sample("from the last row to the first", 4, true),
      recurrence_sample("one iteration", 1, false),
      recurrence_sample("no iterations: the carried values are the initial ones", 0, false),
      counted_sample("a count below the bound: the other rows are zero", 2, false),
      counted_sample("a count below the bound, reverse", 3, true),
      counted_sample("a count above the bound", 9, false),
      counted_sample("a count of none", 0, false),
      counted_sample("a negative count", -2, true),
      until_sample("stops within the bound", 1, 6, nullptr, 0),
      until_sample("stops after the first iteration", 100, 6, nullptr, 0),
      until_sample("never stops by itself", 1, 1e6, nullptr, 0),
      until_sample("a count ends it before the stop", 1, 20, &LoopOptions::count, 2),
      until_sample("the stop ends it before the count", 1, 6, &LoopOptions::count, 4),
      matrix_sample(),
      swap_sample(),
      constant_sample(),
      nested_sample(),
      indexed_sample(),
      parallel_sample(),
      segmented_sample(),
  };
}

std::vector<ErrorSample> loop_error_samples() {
  // Error samples carry no body, so these are the refusals that come before it is looked at; those
  // of bodies are in tests/ops/test_loop.cpp.
  const TensorType h{DType::f32, {3}};
  const auto attributes = [](int64_t carried, int64_t iterations) {
    return Attributes{{"carried", carried}, {"sliced", int64_t{0}}, {"iterations", iterations},
                      {"reverse", false},   {"until", false},       {"counted", false}};
  };
  return {{"no body", {h}, attributes(1, 4), "needs a body"},
          {"negative iterations", {h}, attributes(1, -4), "iterations cannot be -4"},
          {"a negative count of carried values", {h}, attributes(-1, 4), "carried cannot be -1"},
          {"no attributes", {h}, {}, "needs attribute 'carried'"}};
}

}  // namespace fullbore
