#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "fullbore/base/error.h"
#include "fullbore/ops/counted_rows.h"
#include "tests/ops/differentiate.h"

/// Access by index, sorting, and what models make of them: compaction, segment sums, caches.
namespace fullbore {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const Literal kRows = reals({3, 2}, {1, 2, 3, 4, 5, 6});

Literal indices(std::vector<double> values) {
  const auto count = static_cast<int64_t>(values.size());
  return integers(DType::i64, {count}, std::move(values));
}
Literal scalar(double value) { return integers(DType::i64, {}, {value}); }

TEST(Gather, ReadsRowsAndZeroOutOfRange) {
  const Literal y = evaluate({kRows, indices({2, 0, 2, -1, 3})},
                             [](GraphBuilder&, const auto& x) { return gather(x[0], x[1]); });
  EXPECT_EQ(y.shape(), (Shape{5, 2}));
  EXPECT_THAT(elements(y), ElementsAre(5, 6, 1, 2, 5, 6, 0, 0, 0, 0));
}

TEST(ZeroRows, AreZeroUpToTheCountAndUndefinedBeyond) {
  for (const double count : {0.0, 2.0, 3.0, 9.0}) {
    const Literal y = evaluate({scalar(count)}, [](GraphBuilder& builder, const auto& x) {
      return zero_rows(builder, {DType::f64, {3, 2}}, x[0]);
    });
    ASSERT_EQ(y.shape(), (Shape{3, 2}));
    for (int64_t i = 0; i < 6; ++i)
      if (static_cast<double>(i / 2) < count)
        EXPECT_TRUE(y.at(i) == 0 && !std::signbit(y.at(i))) << i << " of " << count;
      else
        EXPECT_TRUE(std::isnan(y.at(i))) << i << " of " << count;
  }
  GraphBuilder builder;
  const Tensor count = builder.input("count", Role::batch, {DType::i64, {}});
  EXPECT_THROW((void)zero_rows(builder, {DType::boolean, {3}}, count), UsageError);
  EXPECT_THROW((void)zero_rows(builder, {DType::f32, {}}, count), UsageError);
}

TEST(Gather, SumsTheCotangentsOfARowReadTwice) {
  const Literal dy = reals({4, 2}, {1, 2, 10, 20, 100, 200, 7, 7});
  const auto dx = differentiate({kRows, indices({2, 0, 2, 9})}, dy,
                                [](GraphBuilder&, const auto& x) { return gather(x[0], x[1]); });
  EXPECT_THAT(elements(dx[0]), ElementsAre(10, 20, 0, 0, 101, 202));
}

TEST(ScatterAdd, AddsInOrderAndDropsWhatIsOutOfRange) {
  const auto scatter = [](GraphBuilder&, const auto& x) { return scatter_add(x[0], x[1], 4); };
  EXPECT_THAT(elements(evaluate({kRows, indices({1, 1, 3})}, scatter)),
              ElementsAre(0, 0, 4, 6, 0, 0, 5, 6));
  EXPECT_THAT(elements(evaluate({kRows, indices({-1, 4, 0})}, scatter)),
              ElementsAre(5, 6, 0, 0, 0, 0, 0, 0));
  // In order, the large terms meet first; in another the small one would be lost.
  const Literal order = reals({3}, {1e17, -1e17, 1});
  EXPECT_THAT(
      elements(evaluate({order, indices({0, 0, 0})},
                        [](GraphBuilder&, const auto& x) { return scatter_add(x[0], x[1], 1); })),
      ElementsAre(1));
}

TEST(TakeAlongAxis, PicksAnElementPerPosition) {
  const Literal along_rows = integers(DType::i32, {3, 1}, {1, 0, 2});
  EXPECT_THAT(elements(evaluate(
                  {kRows, along_rows},
                  [](GraphBuilder&, const auto& x) { return take_along_axis(x[0], x[1], 1); })),
              ElementsAre(2, 3, 0));
  const Literal along_columns = integers(DType::i32, {2, 2}, {0, 2, 1, 1});
  EXPECT_THAT(elements(evaluate(
                  {kRows, along_columns},
                  [](GraphBuilder&, const auto& x) { return take_along_axis(x[0], x[1], -2); })),
              ElementsAre(1, 6, 3, 4));
}

TEST(ScatterAlongAxis, AddsAnElementPerPosition) {
  const Literal where = integers(DType::i32, {3, 2}, {0, 0, 3, 1, -1, 2});
  EXPECT_THAT(elements(evaluate({kRows, where},
                                [](GraphBuilder&, const auto& x) {
                                  return scatter_along_axis(x[0], x[1], 1, 4);
                                })),
              ElementsAre(3, 0, 0, 0, 0, 4, 0, 3, 0, 0, 6, 0));
}

TEST(DynamicSlice, MovesAWindowAndKeepsItInside) {
  const auto window = [](double start) {
    return elements(evaluate({kRows, scalar(start)}, [](GraphBuilder&, const auto& x) {
      return dynamic_slice(x[0], x[1], 0, 2);
    }));
  };
  EXPECT_THAT(window(0), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(window(1), ElementsAre(3, 4, 5, 6));
  EXPECT_THAT(window(2), ElementsAre(3, 4, 5, 6));
  EXPECT_THAT(window(-7), ElementsAre(1, 2, 3, 4));
}

TEST(DynamicUpdateSlice, WritesOneRowOfACache) {
  const auto write = [](GraphBuilder&, const auto& x) {
    return dynamic_update_slice(x[0], x[1], x[2], 0);
  };
  const Literal row = reals({1, 2}, {70, 80});
  EXPECT_THAT(elements(evaluate({kRows, row, scalar(1)}, write)), ElementsAre(1, 2, 70, 80, 5, 6));
  EXPECT_THAT(elements(evaluate({kRows, row, scalar(9)}, write)), ElementsAre(1, 2, 3, 4, 70, 80));
  const Literal dy = reals({3, 2}, {1, 2, 3, 4, 5, 6});
  const auto cotangents = differentiate({kRows, row, scalar(1)}, dy, write);
  EXPECT_THAT(elements(cotangents[0]), ElementsAre(1, 2, 0, 0, 5, 6));
  EXPECT_THAT(elements(cotangents[1]), ElementsAre(3, 4));
}

TEST(OneHot, IsZeroForWhatIsNoClass) {
  const Literal y = evaluate({indices({1, -1, 3, 0})}, [](GraphBuilder&, const auto& x) {
    return one_hot(x[0], 3, DType::f32);
  });
  EXPECT_EQ(y.type(), (TensorType{DType::f32, {4, 3}}));
  EXPECT_THAT(elements(y), ElementsAre(0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0));
}

std::vector<std::vector<double>> sorted(const Literal& x, bool descending) {
  const auto results = evaluate_all({x}, [&](GraphBuilder&, const auto& in) {
    const auto [values, from] = sort(in[0], descending);
    return std::vector{values, from};
  });
  return {elements(results[0]), elements(results[1])};
}

TEST(Sort, IsStableInBothDirections) {
  const Literal ties = reals({2, 4}, {2, 1, 2, 1, 0, 3, 3, 0});
  EXPECT_THAT(sorted(ties, false), ElementsAre(ElementsAre(1, 1, 2, 2, 0, 0, 3, 3),
                                               ElementsAre(1, 3, 0, 2, 0, 3, 1, 2)));
  EXPECT_THAT(sorted(ties, true), ElementsAre(ElementsAre(2, 2, 1, 1, 3, 3, 0, 0),
                                              ElementsAre(0, 2, 1, 3, 1, 2, 0, 3)));
}

TEST(Sort, PutsNaNLast) {
  const Literal x = reals({4}, {NAN, 1, NAN, -HUGE_VAL});
  EXPECT_THAT(sorted(x, false)[1], ElementsAre(3, 1, 0, 2));
  EXPECT_THAT(sorted(x, true)[1], ElementsAre(1, 3, 0, 2));
}

TEST(Sort, SendsCotangentsBackToWhereValuesWere) {
  const auto dx =
      differentiate({reals({3}, {5, 9, 7})}, reals({3}, {1, 10, 100}),
                    [](GraphBuilder&, const auto& x) { return std::get<0>(sort(x[0])); });
  EXPECT_THAT(elements(dx[0]), ElementsAre(1, 100, 10));
}

// Survivors keep their order and move to the front: positions are a running count.
TEST(Compaction, IsACountAndAScatter) {
  const Literal keep = integers(DType::i32, {5}, {1, 0, 1, 1, 0});
  const Literal rows = reals({5}, {10, 20, 30, 40, 50});
  EXPECT_THAT(elements(evaluate({rows, keep},
                                [](GraphBuilder&, const auto& x) {
                                  const Tensor place = cumsum(x[1], 0, true);
                                  const Tensor nowhere = zeros_like(place) - 1.0;
                                  return scatter_add(x[0], select(equal(x[1], 1.0), place, nowhere),
                                                     5);
                                })),
              ElementsAre(10, 30, 40, 0, 0));
}

// A softmax within each segment, from sums by segment alone.
TEST(Segments, NormaliseTheirMembers) {
  const Literal scores = reals({4}, {std::log(1), std::log(3), std::log(5), std::log(1)});
  const Literal y = evaluate({scores, indices({0, 0, 2, 0})}, [](GraphBuilder&, const auto& x) {
    const Tensor e = exp(x[0]);
    return e / gather(scatter_add(e, x[1], 3), x[1]);
  });
  EXPECT_NEAR(y.at(0), 0.2, 1e-15);
  EXPECT_NEAR(y.at(1), 0.6, 1e-15);
  EXPECT_NEAR(y.at(2), 1.0, 1e-15);
  EXPECT_NEAR(y.at(3), 0.2, 1e-15);
}

TEST(Indexing, NamesWhatDoesNotFit) {
  GraphBuilder builder;
  const Tensor x = builder.input("x", Role::batch, {DType::f32, {4, 2}});
  const Tensor i = builder.input("i", Role::batch, {DType::i32, {3}});
  const SourceLoc line{"models/example.cpp", 12};
  EXPECT_EQ(usage_error([&] { scatter_add(x, i, 4, line); }),
            "scatter_add: updates f32[4,2] must begin with the axes of indices i32[3] "
            "(models/example.cpp:12)");
  EXPECT_THAT(usage_error([&] { gather(x, Tensor()); }), HasSubstr("indices is an empty Tensor"));
  EXPECT_THAT(usage_error([&] { gather(x, x); }), HasSubstr("needs integer indices"));
  EXPECT_THAT(usage_error([&] { dynamic_slice(x, i, 0, 2); }), HasSubstr("needs start i64[]"));
}

}  // namespace
}  // namespace fullbore
