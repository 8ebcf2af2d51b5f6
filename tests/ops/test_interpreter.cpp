#include "fullbore/device/interpret.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fullbore/ops/ops.h"
#include "tests/support/evaluate.h"

/// The oracle's own control flow: loops to the letter of ir/loop.h, bodies, composites, observers.
namespace fullbore {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;

Literal scalar(double value) { return integers(DType::i64, {}, {value}); }

// Adds the index to a carried sum, stacks 10 * index + the row it is given.
IterationResults record(const LoopBody& body) {
  const Tensor index = cast(body.index, DType::f64);
  return {.carried = {body.carried[0] + index}, .stacked = {index * 10.0 + body.slices[0]}};
}

const Literal kStart = reals({}, {100});
const Literal kRows = reals({4}, {1, 2, 3, 4});

std::vector<Literal> run(LoopOptions options, double count = -1) {
  return evaluate_all({kStart, kRows, scalar(count)}, [&](GraphBuilder& builder, const auto& x) {
    LoopOptions all = options;
    if (count >= 0) all.count = x[2];
    const LoopResult result = loop(builder, {x[0]}, {x[1]}, all, record);
    return std::vector{result.carried[0], result.stacked[0]};
  });
}

TEST(Loop, CarriesSlicesAndStacks) {
  const std::vector<Literal> y = run({.iterations = 4});
  EXPECT_THAT(elements(y[0]), ElementsAre(106));
  EXPECT_THAT(elements(y[1]), ElementsAre(1, 12, 23, 34));
}

TEST(Loop, InReverseStartsAtTheLastIndex) {
  // carried <- 2 carried + index tells the orders apart.
  const auto ordered = [](bool reverse) {
    return elements(evaluate({reals({}, {0})}, [&](GraphBuilder& builder, const auto& x) {
      return loop(builder, {x[0]}, {}, {.iterations = 3, .reverse = reverse},
                  [](const LoopBody& body) {
                    return IterationResults{
                        .carried = {body.carried[0] * 2.0 + cast(body.index, DType::f64)}};
                  })
          .carried[0];
    }));
  };
  EXPECT_THAT(ordered(false), ElementsAre(4)) << "((0) * 2 + 1) * 2 + 2";
  EXPECT_THAT(ordered(true), ElementsAre(10)) << "((2) * 2 + 1) * 2 + 0";
}

TEST(Loop, CountedMakesFewerIterationsAndLeavesZeroRows) {
  EXPECT_THAT(elements(run({.iterations = 4}, 2)[1]), ElementsAre(1, 12, 0, 0));
  EXPECT_THAT(elements(run({.iterations = 4}, 2)[0]), ElementsAre(101));
  EXPECT_THAT(elements(run({.iterations = 4}, 9)[1]), ElementsAre(1, 12, 23, 34));
  EXPECT_THAT(elements(run({.iterations = 4}, 0)[0]), ElementsAre(100));
  EXPECT_THAT(elements(run({.iterations = 4, .reverse = true}, 2)[1]), ElementsAre(1, 12, 0, 0))
      << "counts down from count - 1";
}

std::vector<Literal> run_until(double limit) {
  return evaluate_all(
      {kStart, kRows, reals({}, {limit})}, [](GraphBuilder& builder, const auto& x) {
        const LoopResult result =
            loop(builder, {x[0]}, {x[1]}, {.iterations = 4}, [&](const LoopBody& body) {
              IterationResults step = record(body);
              step.stop = greater_equal(step.carried[0], x[2]);
              return step;
            });
        return std::vector{result.carried[0], result.stacked[0], result.executed};
      });
}

TEST(Loop, UntilStopsAfterTheIterationThatSaysSo) {
  const std::vector<Literal> y = run_until(103);
  EXPECT_THAT(elements(y[0]), ElementsAre(103));
  EXPECT_THAT(elements(y[1]), ElementsAre(1, 12, 23, 0));
  EXPECT_EQ(y[2].integers()[0], 3);
  EXPECT_EQ(run_until(0)[2].integers()[0], 1) << "at least one iteration";
  EXPECT_EQ(run_until(1e9)[2].integers()[0], 4) << "iterations is the bound";
}

TEST(Loop, OfNoIterationsChangesNothing) {
  const std::vector<Literal> y =
      evaluate_all({kStart, reals({0}, {})}, [](GraphBuilder& builder, const auto& x) {
        const LoopResult result = loop(builder, {x[0]}, {x[1]}, {.iterations = 0}, record);
        return std::vector{result.carried[0], result.stacked[0]};
      });
  EXPECT_THAT(elements(y[0]), ElementsAre(100));
  EXPECT_EQ(y[1].elements(), 0);
}

TEST(Loop, SwapsCarriedValuesAtOnce) {
  const std::vector<Literal> y =
      evaluate_all({reals({}, {1}), reals({}, {2})}, [](GraphBuilder& builder, const auto& x) {
        return loop(builder, {x[0], x[1]}, {}, {.iterations = 3},
                    [](const LoopBody& body) {
                      return IterationResults{.carried = {body.carried[1], body.carried[0]}};
                    })
            .carried;
      });
  EXPECT_EQ(y[0].at(0), 2);
  EXPECT_EQ(y[1].at(0), 1);
}

TEST(Loop, NestsAndCaptures) {
  // sum over i < 3 of sum over j < 2 of x * i
  const Literal y = evaluate({reals({}, {5})}, [](GraphBuilder& builder, const auto& x) {
    const Tensor zero = full(builder, {DType::f64, {}}, 0);
    return loop(builder, {zero}, {}, {.iterations = 3},
                [&](const LoopBody& outer) {
                  GraphBuilder& inside = outer.index.builder();
                  const Tensor i = cast(outer.index, DType::f64);
                  return IterationResults{
                      .carried =
                          loop(inside, {outer.carried[0]}, {}, {.iterations = 2},
                               [&](const LoopBody& inner) {
                                 return IterationResults{.carried = {inner.carried[0] + x[0] * i}};
                               })
                              .carried};
                })
        .carried[0];
  });
  EXPECT_THAT(elements(y), ElementsAre(30));
}

TEST(Fused, EvaluatesItsBody) {
  GraphBuilder body("fused");
  const Tensor a = body.input("a", Role::local, {DType::f64, {2}});
  const Tensor b = body.input("b", Role::local, {DType::f64, {2}});
  body.output("y0", a * b + 1.0);
  body.output("y1", a);
  const auto graph = std::make_shared<const Graph>(body.take());
  const std::vector<Literal> y =
      evaluate_all({reals({2}, {2, 3}), reals({2}, {5, 7})},
                   [&](GraphBuilder& builder, const auto& x) { return fused(builder, x, graph); });
  EXPECT_THAT(elements(y[0]), ElementsAre(11, 22));
  EXPECT_THAT(elements(y[1]), ElementsAre(2, 3));
}

TEST(Interpret, RoundsNothingToTheGraphsDTypes) {
  const TensorType type{DType::bf16, {}};
  const Literal y = evaluate({Literal::of(type, {1}), Literal::of(type, {1e-9})},
                             [](GraphBuilder&, const auto& x) { return x[0] + x[1]; });
  EXPECT_THAT(elements(y), ElementsAre(DoubleEq(1 + 1e-9)));
}

TEST(Interpret, ObservesTheOutermostNodesInOrder) {
  GraphBuilder builder;
  const Tensor x = builder.input("x", Role::batch, {DType::f64, {}});
  builder.output("y", exp(neg(x)) * 2.0);
  std::vector<std::string> seen;
  std::vector<double> values;
  interpret(builder.graph(), std::vector{reals({}, {0})},
            [&](const Node& node, std::span<const Literal> results) {
              seen.emplace_back(node.op->name);
              values.push_back(results[0].at(0));
            });
  EXPECT_THAT(seen, ElementsAre("neg", "exp", "constant", "mul"));
  EXPECT_THAT(values, ElementsAre(0, 1, 2, 2));
}

TEST(Interpret, AnInputMayBeAnOutputAndReadTwice) {
  const std::vector<Literal> y =
      evaluate_all({reals({2}, {3, 4})}, [](GraphBuilder&, const auto& x) {
        return std::vector{x[0], x[0] * x[0], x[0]};
      });
  EXPECT_THAT(elements(y[0]), ElementsAre(3, 4));
  EXPECT_THAT(elements(y[1]), ElementsAre(9, 16));
  EXPECT_THAT(elements(y[2]), ElementsAre(3, 4));
}

TEST(InterpretNode, TellsMagnitudesOfSums) {
  GraphBuilder builder;
  const Tensor x = builder.input("x", Role::batch, {DType::f64, {1, 3}});
  const Tensor w = builder.input("w", Role::batch, {DType::f64, {3, 1}});
  const Tensor y = matmul(x, w);
  const Node& node = *builder.graph().producer_node(y.value());
  const Literal a = reals({1, 3}, {1, -2, 3}), b = reals({3, 1}, {1, 1, 1});
  std::vector<std::vector<double>> magnitudes;
  const std::vector<Literal> results = interpret_node(node, {y.type()}, {&a, &b}, &magnitudes);
  EXPECT_EQ(results[0].at(0), 2);
  ASSERT_EQ(magnitudes.size(), 1U);
  EXPECT_THAT(magnitudes[0], ElementsAre(18)) << "3 terms times |1| + |-2| + |3|";
}

}  // namespace
}  // namespace fullbore
