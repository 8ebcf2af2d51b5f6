#include "fullbore/trace/control.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "fullbore/autodiff/backward.h"
#include "tests/support/evaluate.h"
#include "tests/support/interpret_by_name.h"

namespace fullbore {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const TensorType kScalar{DType::f32, {}};
const TensorType kPair{DType::f32, {2}};

struct Sum {
  Tensor value;
  Tensor number;
  int64_t unit = 7;  // is no tensor, and stays
};
struct Inner {
  Tensor a;
  std::array<Tensor, 2> pair;
};
struct Deep {
  std::vector<Tensor> list;
  Inner inner;
  Tensor none;
};

std::vector<double> evaluate(Trace& trace, const std::string& name,
                             const std::map<std::string, Literal>& inputs) {
  return elements(interpret_by_name(trace.finish(), inputs).at(name));
}

TEST(TensorStruct, ListsAndFillsWhatIsInIt) {
  Trace trace("t", true);
  const auto tensor = [&](const char* name) { return trace.batch(name, kScalar); };
  const Deep deep{{tensor("a"), tensor("b")}, {tensor("c"), {tensor("d"), tensor("e")}}, {}};
  const std::vector<Tensor> found = tensors_of(deep);
  ASSERT_EQ(found.size(), 5U);
  for (size_t i = 0; i + 1 < found.size(); ++i)
    EXPECT_LT(found[i].value().id, found[i + 1].value().id);
  std::vector<Tensor> turned(found.rbegin(), found.rend());
  const Deep other = with_tensors(deep, turned);
  EXPECT_EQ(other.inner.pair[1].value(), found[0].value());
  EXPECT_EQ(other.list[0].value(), found[4].value());
  EXPECT_FALSE(other.none.valid());
}

// x doubles until it is above 10.
TEST(WhileLoop, EndsWhereTheBodySaysStop) {
  for (const auto& [start, last, iterations] :
       {std::tuple(1.0, 16.0, 4.0), {7.0, 14.0, 1.0}, {0.1, 12.8, 7.0}, {0.001, 0.256, 8.0}}) {
    Trace trace("t", false);
    const Tensor x = trace.batch("x", kScalar);
    const auto made =
        while_loop(Sum{x, zeros_like(x)}, {.at_most = 8}, [&](const Sum& now, Tensor index) {
          EXPECT_EQ(now.unit, 7);
          const Tensor next = now.value * 2.0;
          return Iteration{Sum{next, now.number + cast(index, DType::f32)}, greater(next, 10.0)};
        });
    trace.result("value", made.state.value);
    trace.result("number", made.state.number);
    trace.result("iterations", made.iterations);
    const auto results = interpret_by_name(trace.finish(), {{"x", Literal::of(kScalar, {start})}});
    EXPECT_FLOAT_EQ(static_cast<float>(elements(results.at("value"))[0]), static_cast<float>(last));
    EXPECT_EQ(elements(results.at("iterations"))[0], iterations);
    EXPECT_EQ(elements(results.at("number"))[0], iterations * (iterations - 1) / 2);
  }
}

TEST(WhileLoop, MakesAsManyIterationsAsCountSays) {
  for (const auto& [count, made_iterations] : {std::pair(-1.0, 0.0), {2.0, 2.0}, {9.0, 3.0}}) {
    Trace trace("t", false);
    const Tensor x = trace.batch("x", kScalar);
    const Tensor n = trace.batch("n", {DType::i64, {}});
    const auto made =
        while_loop(x, {.at_most = 3, .count = n}, [](Tensor now) { return now * 2.0; });
    trace.result("value", made.state);
    trace.result("iterations", made.iterations);
    const auto results = interpret_by_name(
        trace.finish(),
        {{"x", Literal::of(kScalar, {1})}, {"n", Literal::of({DType::i64, {}}, {count})}});
    EXPECT_EQ(elements(results.at("value"))[0], std::exp2(made_iterations));
    EXPECT_EQ(elements(results.at("iterations"))[0], made_iterations);
  }
}

// d/dx of x^8, by three squarings.
TEST(WhileLoop, GradientsGoThrough) {
  for (const int64_t segments : {0, 2}) {
    Trace trace("t", true);
    const Tensor x = trace.batch("x", kScalar);
    const auto made =
        while_loop(x, {.at_most = 3, .segments = segments}, [](Tensor now) { return now * now; });
    trace.result("dx", gradient(made.state, std::array{x})[0]);
    EXPECT_NEAR(evaluate(trace, "dx", {{"x", Literal::of(kScalar, {1.5})}})[0],
                8 * std::pow(1.5, 7), 1e-4);
  }
}

TEST(WhileLoop, DrawsAnewOnEachIteration) {
  for (const bool anew : {false, true}) {
    Trace trace("t", true);
    const Tensor zero = full(trace.builder(), kScalar, 0);
    struct Draws {
      Tensor last, difference;
    };
    const auto made = while_loop(
        Draws{zero, zero}, {.at_most = 2, .trace = anew ? &trace : nullptr}, [&](const Draws& now) {
          const Tensor draw = random_uniform(trace.random(), kScalar);
          return Draws{draw, draw - now.last};
        });
    trace.result("difference", made.state.difference);
    const double difference = evaluate(trace, "difference",
                                       {{"random.seed", Literal::of({DType::i64, {}}, {1})},
                                        {"step", Literal::of({DType::i64, {}}, {5})}})[0];
    EXPECT_EQ(difference != 0, anew);
  }
}

TEST(Scan, CarriesAStateAlongRows) {
  for (const bool reverse : {false, true}) {
    Trace trace("t", false);
    const Tensor x = trace.batch("x", {DType::f32, {3, 2}});
    const Tensor zero = full(trace.builder(), kPair, 0);
    const auto made =
        scan(Sum{zero, zero}, x, {.reverse = reverse}, [](const Sum& now, Tensor row) {
          const Tensor sum = now.value + row;
          return Scanned{Sum{sum, now.number + 1.0}, Inner{sum, {row, sum * 2.0}}};
        });
    trace.result("last", made.state.value);
    trace.result("sums", made.output.a);
    trace.result("double", made.output.pair[1]);
    const auto results = interpret_by_name(
        trace.finish(), {{"x", Literal::of({DType::f32, {3, 2}}, {1, 10, 2, 20, 3, 30})}});
    EXPECT_THAT(elements(results.at("last")), ElementsAre(6, 60));
    if (reverse) {
      EXPECT_THAT(elements(results.at("sums")), ElementsAre(6, 60, 5, 50, 3, 30));
    } else {
      EXPECT_THAT(elements(results.at("sums")), ElementsAre(1, 10, 3, 30, 6, 60));
      EXPECT_THAT(elements(results.at("double")), ElementsAre(2, 20, 6, 60, 12, 120));
    }
  }
}

// log(x) where x > 0, -x elsewhere, and the gradients of what was taken alone: that of log(-1) would be a NaN.
TEST(Cond, TakesOneBranch) {
  for (const auto& [x_value, y, dx] : {std::tuple(2.0, std::log(2.0), 0.5), {-1.0, 1.0, -1.0}}) {
    Trace trace("t", true);
    const Tensor x = trace.batch("x", kScalar);
    const auto made = cond(
        greater(x, 0.0),
        [&] {
          return Sum{log(x), x};
        },
        [&] {
          return Sum{-x, x * 3.0};
        });
    trace.result("y", made.value);
    trace.result("number", made.number);
    trace.result("dx", gradient(made.value, std::array{x})[0]);
    const auto results =
        interpret_by_name(trace.finish(), {{"x", Literal::of(kScalar, {x_value})}});
    EXPECT_NEAR(elements(results.at("y"))[0], y, 1e-6);
    EXPECT_NEAR(elements(results.at("dx"))[0], dx, 1e-6);
    EXPECT_EQ(elements(results.at("number"))[0], x_value > 0 ? x_value : 3 * x_value);
  }
}

TEST(Control, MistakesNameTheLine) {
  Trace trace("t", true);
  const Tensor x = trace.batch("x", kScalar);
  const Tensor pair = trace.batch("pair", kPair);
  const Tensor yes = greater(x, 0.0);
  const SourceLoc loc{"models/mine.cpp", 12};
  const auto same = [](Tensor now) { return now; };
  const auto other = [&](Tensor) { return pair; };
  const auto none = [](Tensor) { return Tensor(); };
  const auto number = [](Tensor now) { return Iteration{now, now}; };
  const auto rows = [](Tensor now, Tensor row) { return Scanned{now, row}; };
  const auto fails = [](const std::function<void()>& action, const std::string& words) {
    EXPECT_EQ(usage_error(action), words + " (models/mine.cpp:12)");
  };
  fails([&] { while_loop(x, {}, same, loc); },
        "while_loop: at_most is 0; say how many iterations there can be");
  fails(
      [&] {
        while_loop(
            Deep{}, {.at_most = 2}, [](const Deep& deep) { return deep; }, loc);
      },
      "while_loop: there is no tensor in the state");
  fails([&] { while_loop(x, {.at_most = 2, .count = x}, same, loc); },
        "while_loop: count is f32[], not i64[]");
  fails([&] { while_loop(x, {.at_most = 2}, other, loc); },
        "while_loop: tensor 0 of what the body returns as the next state is f32[2], not f32[]");
  fails([&] { while_loop(x, {.at_most = 2}, none, loc); },
        "while_loop: what the body returns as the next state has 0 tensors, 1 were expected");
  fails([&] { while_loop(x, {.at_most = 2}, number, loc); },
        "while_loop: stop is f32[], not bool[]");
  fails([&] { scan(x, x, {}, rows, loc); }, "scan: rows are of tensors with a first axis");
  fails(
      [&] {
        cond(
            x, [&] { return x; }, [&] { return x; }, loc);
      },
      "cond: the condition is f32[], not bool[]");
  fails(
      [&] {
        cond(
            yes, [&] { return x; }, [&] { return pair; }, loc);
      },
      "cond: tensor 0 of what the second branch returns is f32[2], not f32[]");
}

}  // namespace
}  // namespace fullbore
