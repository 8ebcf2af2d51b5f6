#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fullbore/ir/loop.h"
#include "fullbore/ir/op_def.h"
#include "fullbore/ir/verify.h"
#include "fullbore/ops/ops.h"
#include "tests/support/evaluate.h"

/// Tracing and checking loops; what they compute is in test_interpreter.cpp.
namespace fullbore {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const SourceLoc kLine{"models/example.cpp", 33};

struct Traced {
  GraphBuilder builder{"step"};
  Tensor x = builder.input("x", Role::batch, {DType::f32, {3}});
  Tensor rows = builder.input("rows", Role::batch, {DType::f32, {4, 3}});
  Tensor w = builder.input("w", Role::parameter, {DType::f32, {3}});
};

TEST(LoopBuilder, CapturesWhatTheBodyUsesOnce) {
  Traced t;
  loop(t.builder, {t.x}, {t.rows}, {.iterations = 4}, [&](const LoopBody& body) {
    return IterationResults{.carried = {body.carried[0] * t.w + body.slices[0] * t.w}};
  });
  const Node& node = t.builder.graph().nodes().back();
  EXPECT_EQ(LoopShape(node).captured, 1);
  EXPECT_THAT(node.inputs, ElementsAre(t.x.value(), t.rows.value(), t.w.value()));
  EXPECT_EQ(verify(t.builder.graph()), "");
}

TEST(LoopBuilder, LeavesOutsideWhatDoesNotDependOnTheIteration) {
  Traced t;
  loop(t.builder, {t.x}, {}, {.iterations = 4}, [&](const LoopBody& body) {
    return IterationResults{.carried = {body.carried[0] + exp(t.w)}};
  });
  const std::vector<Node>& nodes = t.builder.graph().nodes();
  ASSERT_EQ(nodes.size(), 2U);
  EXPECT_EQ(nodes[0].op->name, "exp");
  EXPECT_EQ(nodes[1].body->nodes().size(), 1U);
}

TEST(LoopBuilder, CapturesThroughEveryLoopThatEncloses) {
  Traced t;
  loop(t.builder, {t.x}, {}, {.iterations = 4}, [&](const LoopBody& outer) {
    return IterationResults{.carried =
                                loop(outer.index.builder(), outer.carried, {}, {.iterations = 2},
                                     [&](const LoopBody& inner) {
                                       return IterationResults{.carried = {inner.carried[0] * t.w}};
                                     })
                                    .carried};
  });
  const Node& outer = t.builder.graph().nodes().back();
  EXPECT_EQ(LoopShape(outer).captured, 1);
  EXPECT_EQ(LoopShape(outer.body->nodes().back()).captured, 1);
  EXPECT_EQ(verify(t.builder.graph()), "");
}

TEST(LoopBuilder, TakesResultsThatAreOperands) {
  Traced t;
  const LoopResult result =
      loop(t.builder, {t.x}, {}, {.iterations = 2}, [&](const LoopBody& body) {
        return IterationResults{.carried = {t.w}, .stacked = {body.carried[0], t.w}};
      });
  EXPECT_EQ(result.carried[0].shape(), Shape{3});
  ASSERT_EQ(result.stacked.size(), 2U);
  EXPECT_EQ(result.stacked[0].shape(), (Shape{2, 3}));
  EXPECT_FALSE(result.executed.valid());
}

TEST(LoopBuilder, GivesTheIterationsOfAnUntilLoop) {
  Traced t;
  const LoopResult result =
      loop(t.builder, {t.x}, {}, {.iterations = 9}, [&](const LoopBody& body) {
        const Tensor next = body.carried[0] * 2.0;
        return IterationResults{.carried = {next}, .stop = greater(reduce_max(next, {0}), 100.0)};
      });
  EXPECT_EQ(result.executed.type(), (TensorType{DType::i64, {}}));
}

std::string refusal(const std::vector<Tensor>& carried, const std::vector<Tensor>& sliced,
                    LoopOptions options,
                    const std::function<IterationResults(const LoopBody&)>& body) {
  return usage_error([&] { loop(carried[0].builder(), carried, sliced, options, body, kLine); });
}

TEST(LoopBuilder, NamesWhatDoesNotFit) {
  Traced t;
  const auto keep = [](const LoopBody& body) { return IterationResults{.carried = body.carried}; };
  EXPECT_EQ(refusal({t.x}, {}, {.iterations = 4},
                    [](const LoopBody& body) {
                      return IterationResults{.carried = {reduce_sum(body.carried[0], {0})}};
                    }),
            "loop: carried 0 enters the body as f32[3] and leaves it as f32[] "
            "(models/example.cpp:33)");
  EXPECT_EQ(refusal({t.x}, {}, {.iterations = 4},
                    [](const LoopBody&) { return IterationResults{.carried = {}}; }),
            "loop: 1 values enter the body as carried and 0 leave it (models/example.cpp:33)");
  EXPECT_THAT(refusal({t.x}, {t.rows}, {.iterations = 5}, keep),
              HasSubstr("sliced 0 is f32[4,3], which has no row for each of 5 iterations"));
  const std::string apart = "iterations side by side carry nothing from one to the next";
  const auto stack = [](const LoopBody& body) {
    return IterationResults{.carried = {}, .stacked = {body.index}};
  };
  EXPECT_THAT(refusal({t.x}, {}, {.iterations = 2, .parallel = true}, keep), HasSubstr(apart));
  EXPECT_THAT(usage_error([&] {
                loop(
                    t.builder, {}, {t.rows}, {.iterations = 4, .parallel = true},
                    [](const LoopBody& body) {
                      return IterationResults{
                          .carried = {}, .stacked = {body.index}, .stop = equal(body.index, 2.0)};
                    },
                    kLine);
              }),
              HasSubstr(apart));
  const Tensor count = t.builder.input("count", Role::batch, {DType::i64, {}});
  EXPECT_THAT(usage_error([&] {
                loop(t.builder, {}, {t.rows}, {.iterations = 4, .count = count, .parallel = true},
                     stack, kLine);
              }),
              HasSubstr(apart));
  EXPECT_THAT(refusal({t.x}, {}, {.iterations = -1}, keep), HasSubstr("iterations cannot be -1"));
  EXPECT_THAT(refusal({t.x}, {}, {.iterations = 2, .count = t.x}, keep),
              HasSubstr("needs count i64[], got f32[3]"));
  EXPECT_THAT(refusal({t.x}, {}, {.iterations = 2},
                      [](const LoopBody& body) {
                        return IterationResults{.carried = body.carried, .stop = body.index};
                      }),
              HasSubstr("needs stop bool[], got i64[]"));
  EXPECT_THAT(refusal({t.x}, {}, {.iterations = 2},
                      [](const LoopBody& body) {
                        return IterationResults{.carried = body.carried, .stacked = {Tensor()}};
                      }),
              HasSubstr("the body's stacked 0 is an empty Tensor"));
}

TEST(LoopBuilder, RefusesTensorsOfABodyThatHasEnded) {
  Traced t;
  Tensor leaked;
  loop(t.builder, {t.x}, {}, {.iterations = 2}, [&](const LoopBody& body) {
    leaked = body.carried[0] * 2.0;
    return IterationResults{.carried = {leaked}};
  });
  EXPECT_THAT(usage_error([&] {
                add({leaked, kLine}, {t.x, kLine});
              }),
              HasSubstr("add: a belongs to a trace or the body of a loop that has ended"));
  EXPECT_THAT(usage_error([&] { exp(leaked, kLine); }), HasSubstr("(models/example.cpp:33)"));
  EXPECT_THAT(usage_error([&] { reduce_sum(leaked, {0}); }), HasSubstr("reduce_sum: x belongs"));
  EXPECT_THAT(usage_error([&] { t.builder.output("y", leaked); }), HasSubstr("used in 'step'"));
  EXPECT_THAT(usage_error([&] { (void)leaked.shape(); }), HasSubstr("was used after"));
}

TEST(LoopOp, RefusesABodyOfAnotherForm) {
  const auto refuse = [](const std::vector<TensorType>& inputs, const Graph& body) {
    const Attributes attributes{{"carried", int64_t{1}},    {"sliced", int64_t{0}},
                                {"iterations", int64_t{2}}, {"reverse", false},
                                {"until", false},           {"counted", false}};
    return usage_error([&] {
      get_op("loop").infer({get_op("loop"), inputs, attributes, &body, kLine});
    });
  };
  const TensorType x{DType::f32, {3}};
  Graph body("body");
  EXPECT_THAT(refuse({x}, body), HasSubstr("the body has 0 inputs, its operands make 2"));
  body.add_input("index", Role::local, {DType::i32, {}});
  const Value carried = body.add_input("carried0", Role::local, x);
  EXPECT_THAT(refuse({x}, body), HasSubstr("the body has 0 outputs, too few for 1 carried"));
  body.add_output("carried0", carried);
  EXPECT_THAT(refuse({x}, body), HasSubstr("the body takes its index as i32[], not i64[]"));
  EXPECT_THAT(refuse({}, body), HasSubstr("0 operands for 1 carried and 0 sliced"));
  Graph idle("body");
  idle.add_input("index", Role::local, {DType::i64, {}});
  const Attributes none{{"carried", int64_t{0}}, {"sliced", int64_t{0}}, {"iterations", int64_t{2}},
                        {"reverse", false},      {"until", false},       {"counted", false}};
  EXPECT_THAT(usage_error([&] {
                get_op("loop").infer({get_op("loop"), {}, none, &idle, kLine});
              }),
              HasSubstr("nothing would come of the loop"));

  Graph other("body");
  other.add_input("index", Role::local, {DType::i64, {}});
  other.add_output("carried0", other.add_input("carried0", Role::local, {DType::f32, {4}}));
  EXPECT_THAT(refuse({x}, other), HasSubstr("carried 0 is f32[3], the body takes f32[4]"));
}

TEST(FusedOp, IsItsBody) {
  GraphBuilder inner("fused");
  const Tensor a = inner.input("x0", Role::local, {DType::f64, {2}});
  const Tensor b = inner.input("x1", Role::local, {DType::f64, {2}});
  inner.output("y0", a * b);
  inner.output("y1", a + b);
  const auto body = std::make_shared<const Graph>(inner.take());
  const std::vector<Literal> y =
      evaluate_all({reals({2}, {2, 3}), reals({2}, {5, 7})},
                   [&](GraphBuilder& builder, const auto& x) { return fused(builder, x, body); });
  EXPECT_THAT(elements(y[0]), ElementsAre(10, 21));
  EXPECT_THAT(elements(y[1]), ElementsAre(7, 10));

  GraphBuilder builder;
  const Tensor narrow = builder.input("x", Role::batch, {DType::f32, {2}});
  EXPECT_THAT(usage_error([&] {
                fused(builder, std::vector{narrow, narrow}, body);
              }),
              HasSubstr("operand 0 is f32[2], the body takes f64[2]"));
  EXPECT_THAT(usage_error([&] { fused(builder, std::vector{narrow}, body); }),
              HasSubstr("1 operands for the 2 inputs of its body"));
}

}  // namespace
}  // namespace fullbore
