#include "fullbore/ops/selection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "differentiate.h"
#include "fullbore/ops/elementary.h"

namespace fullbore {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const double kNaN = std::nan("");

std::vector<double> values(const std::vector<Literal>& inputs, const BuildOne& build) {
  return elements(evaluate(inputs, build));
}

TEST(Selection, TopkIsTheLargestInOrder) {
  const std::vector<Literal> made =
      evaluate_all({reals({2, 4}, {3, 1, 4, 1, 2, 7, 1, 8})}, [](GraphBuilder&, const auto& x) {
        const auto [large, where] = topk(x[0], 2);
        const auto [small, there] = topk(x[0], 1, false);
        return std::vector{large, where, small, there};
      });
  EXPECT_THAT(elements(made[0]), ElementsAre(4, 3, 8, 7));
  EXPECT_THAT(elements(made[1]), ElementsAre(2, 0, 3, 1));
  EXPECT_THAT(elements(made[2]), ElementsAre(1, 1));
  EXPECT_THAT(elements(made[3]), ElementsAre(1, 2));
}

TEST(Selection, ArgminOfEveryKindOfNumber) {
  for (DType dtype : {DType::f64, DType::i64, DType::u8, DType::i8}) {
    const Literal x = Literal::of({dtype, {5}}, {3, 1, 2, 1, 100});
    EXPECT_THAT(values({x}, [](GraphBuilder&, const auto& t) { return argmin(t[0], 0); }),
                ElementsAre(1));
  }
  EXPECT_THAT(values({Literal::of({DType::i8, {3}}, {127, -128, 0})},
                     [](GraphBuilder&, const auto& t) { return argmin(t[0], -1); }),
              ElementsAre(1));
}

TEST(Selection, VarianceDividesByCountLessCorrection) {
  const Literal x = reals({2, 4}, {1, 2, 3, 4, 0, 0, 4, 4});
  EXPECT_THAT(values({x}, [](GraphBuilder&, const auto& t) { return variance(t[0], {1}); }),
              ElementsAre(5.0 / 3, 16.0 / 3));
  EXPECT_THAT(values({x}, [](GraphBuilder&,
                             const auto& t) { return standard_deviation(t[0], {-1}, 0, true); }),
              ElementsAre(std::sqrt(1.25), 2));
}

TEST(Selection, AnyAndAllOfTruthValuesAndNumbers) {
  const Literal x = reals({3, 2}, {0, 0, 0, 2, 1, -1});
  EXPECT_THAT(values({x}, [](GraphBuilder&, const auto& t) { return any(t[0], {1}); }),
              ElementsAre(0, 1, 1));
  EXPECT_THAT(values({x}, [](GraphBuilder&, const auto& t) { return all(t[0], {1}); }),
              ElementsAre(0, 0, 1));
}

TEST(Selection, IndexTakesAsManyIndicesAsAxes) {
  const std::vector<Literal> in = {reals({2, 3, 2}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}),
                                   integers(DType::i32, {2, 1}, {1, 0}),
                                   integers(DType::i64, {3}, {2, 0, 3})};
  const BuildOne take = [](GraphBuilder&, const std::vector<Tensor>& t) {
    return index(t[0], std::vector{t[1], t[2]});
  };
  EXPECT_EQ(evaluate(in, take).shape(), (Shape{2, 3, 2}));
  EXPECT_THAT(values(in, take), ElementsAre(10, 11, 6, 7, 0, 0, 4, 5, 0, 1, 0, 0));
  const Literal dy = reals({2, 3, 2}, std::vector<double>(12, 1));
  EXPECT_THAT(elements(differentiate(in, dy, take)[0]),
              ElementsAre(1, 1, 0, 0, 1, 1, 1, 1, 0, 0, 1, 1));
}

TEST(Selection, IndexPutReplacesByTheLastOrAdds) {
  const std::vector<Literal> in = {reals({2, 2}, {1, 2, 3, 4}), reals({3}, {10, 20, 30}),
                                   integers(DType::i32, {3}, {1, 1, 0}),
                                   integers(DType::i32, {3}, {0, 0, 9})};
  const auto put = [](bool accumulate) {
    return [=](GraphBuilder&, const std::vector<Tensor>& t) {
      return index_put(t[0], std::vector{t[2], t[3]}, t[1], accumulate);
    };
  };
  EXPECT_THAT(values(in, put(false)), ElementsAre(1, 2, 20, 4));
  EXPECT_THAT(values(in, put(true)), ElementsAre(1, 2, 33, 4));
  const std::vector<Literal> d = differentiate(in, reals({2, 2}, {5, 6, 7, 8}), put(false));
  EXPECT_THAT(elements(d[0]), ElementsAre(5, 6, 0, 8));
  EXPECT_THAT(elements(d[1]), ElementsAre(0, 7, 0));
}

TEST(Selection, ScatterReducesEachWay) {
  const std::vector<Literal> in = {reals({2, 3}, {1, 2, 3, 4, 5, 6}),
                                   reals({2, 3}, {9, -4, 7, 0, 8, 1}),
                                   integers(DType::i32, {2, 3}, {0, 0, 2, 1, 1, 5})};
  const auto by = [](ScatterReduce reduce) {
    return [=](GraphBuilder&, const std::vector<Tensor>& t) {
      return scatter(t[0], t[1], t[2], -1, reduce);
    };
  };
  EXPECT_THAT(values(in, by(ScatterReduce::replace)), ElementsAre(-4, 2, 7, 4, 8, 6));
  EXPECT_THAT(values(in, by(ScatterReduce::sum)), ElementsAre(6, 2, 10, 4, 13, 6));
  EXPECT_THAT(values(in, by(ScatterReduce::mean)), ElementsAre(2, 2, 5, 4, 13.0 / 3, 6));
  EXPECT_THAT(values(in, by(ScatterReduce::max)), ElementsAre(9, 2, 7, 4, 8, 6));
  EXPECT_THAT(values(in, by(ScatterReduce::min)), ElementsAre(-4, 2, 3, 4, 0, 6));
  const Literal dy = reals({2, 3}, {1, 1, 1, 1, 1, 1});
  EXPECT_THAT(elements(differentiate(in, dy, by(ScatterReduce::min))[1]),
              ElementsAre(0, 1, 0, 1, 0, 0));
  EXPECT_THAT(elements(differentiate(in, dy, by(ScatterReduce::mean))[0]),
              ElementsAre(1.0 / 3, 1, 0.5, 1, 1.0 / 3, 1));
}

TEST(Selection, BagsOfEmbeddingsSkipWhatPadsThem) {
  const std::vector<Literal> in = {reals({3, 2}, {1, 2, -3, -4, 5, 6}),
                                   integers(DType::i32, {3, 2}, {0, 2, 1, -1, -1, 3}),
                                   reals({3, 2}, {2, 1, 3, 9, 9, 9})};
  const auto of = [](BagMode mode, bool weighted = false) {
    return [=](GraphBuilder&, const std::vector<Tensor>& t) {
      return embedding_bag(t[0], t[1], mode, weighted ? t[2] : Tensor());
    };
  };
  EXPECT_THAT(values(in, of(BagMode::sum)), ElementsAre(6, 8, -3, -4, 0, 0));
  EXPECT_THAT(values(in, of(BagMode::mean)), ElementsAre(3, 4, -3, -4, 0, 0));
  EXPECT_THAT(values(in, of(BagMode::max)), ElementsAre(5, 6, -3, -4, 0, 0));
  EXPECT_THAT(values(in, of(BagMode::sum, true)), ElementsAre(7, 10, -9, -12, 0, 0));
  EXPECT_THAT(elements(differentiate(in, reals({3, 2}, {1, 1, 1, 1, 1, 1}), of(BagMode::mean))[0]),
              ElementsAre(0.5, 0.5, 1, 1, 0.5, 0.5));
}

TEST(Selection, PaddingByWhatTheAxisHolds) {
  const Literal x = reals({1, 4}, {1, 2, 3, 4});
  const auto by = [](PadMode mode) {
    return [=](GraphBuilder&, const std::vector<Tensor>& t) { return pad_by(t[0], 1, 2, 1, mode); };
  };
  EXPECT_THAT(values({x}, by(PadMode::reflect)), ElementsAre(3, 2, 1, 2, 3, 4, 3));
  EXPECT_THAT(values({x}, by(PadMode::replicate)), ElementsAre(1, 1, 1, 2, 3, 4, 4));
  EXPECT_THAT(values({x}, by(PadMode::circular)), ElementsAre(3, 4, 1, 2, 3, 4, 1));
}

TEST(Selection, FunctionsWithoutOpsOfTheirOwn) {
  const Literal x = reals({6}, {-2.5, 2.5, -0.5, HUGE_VAL, -HUGE_VAL, kNaN});
  EXPECT_THAT(values({x}, [](GraphBuilder&, const auto& t) { return is_nan(t[0]); }),
              ElementsAre(0, 0, 0, 0, 0, 1));
  EXPECT_THAT(values({x}, [](GraphBuilder&, const auto& t) { return is_inf(t[0]); }),
              ElementsAre(0, 0, 0, 1, 1, 0));
  EXPECT_THAT(
      values({x}, [](GraphBuilder&, const auto& t) { return nan_to_num(t[0], 7); }),
      ElementsAre(-2.5, 2.5, -0.5, dtype_largest(DType::f64), -dtype_largest(DType::f64), 7));
  const Literal some = reals({4}, {-2.5, 2.5, -0.5, 7});
  EXPECT_THAT(values({some}, [](GraphBuilder&, const auto& t) { return trunc(t[0]); }),
              ElementsAre(-2, 2, 0, 7));
  const std::vector<Literal> in = {some, reals({4}, {2, -2, 2, 2.5})};
  const BuildOne rest = [](GraphBuilder&, const std::vector<Tensor>& t) {
    return fmod(t[0], t[1]);
  };
  EXPECT_THAT(values(in, rest), ElementsAre(-0.5, 0.5, -0.5, 2));
  const std::vector<Literal> d = differentiate(in, reals({4}, {1, 1, 1, 1}), rest);
  EXPECT_THAT(elements(d[0]), ElementsAre(1, 1, 1, 1));
  EXPECT_THAT(elements(d[1]), ElementsAre(1, 1, 0, -2));
  EXPECT_THAT(values({some}, [](GraphBuilder&, const auto& t) { return fmod(t[0], 2.0); }),
              ElementsAre(-0.5, 0.5, -0.5, 1));
}

TEST(Selection, NamesWhatDoesNotFit) {
  const auto message = [](const BuildOne& build) {
    return usage_error([&] {
      evaluate({reals({2, 3}, {1, 2, 3, 4, 5, 6}), integers(DType::i32, {2}, {0, 1})}, build);
    });
  };
  EXPECT_THAT(message([](GraphBuilder&, const auto& t) { return std::get<0>(topk(t[0], 4)); }),
              HasSubstr("topk: 4 of x f64[2,3] (ops/test_selection.cpp:"));
  EXPECT_THAT(message([](GraphBuilder&, const auto& t) { return variance(t[0], {0}, 2); }),
              HasSubstr("2 elements of x f64[2,3] and correction 2 leave nothing"));
  EXPECT_THAT(message([](GraphBuilder&, const auto& t) {
                return index(t[0], std::vector{t[1], t[1], t[1]});
              }),
              HasSubstr("index: 3 indices for x f64[2,3]"));
  EXPECT_THAT(message([](GraphBuilder&, const auto& t) { return scatter(t[0], t[0], t[1], 0); }),
              HasSubstr("scatter: needs integer indices [2,3] as updates, got i32[2]"));
  EXPECT_THAT(message([](GraphBuilder&, const auto& t) { return embedding_bag(t[1], t[1]); }),
              HasSubstr("needs a floating table [N,C], got i32[2]"));
  EXPECT_THAT(
      message([](GraphBuilder&, const auto& t) { return pad_by(t[0], 1, 3, 0, PadMode::reflect); }),
      HasSubstr("widths 3 and 0 do not suit the 3 of axis 1 of x f64[2,3]"));
}

}  // namespace
}  // namespace fullbore
