#include "fullbore/train/weight_mapping.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/support/evaluate.h"

namespace fullbore {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Optional;

constexpr const char* kFile = "file: {weights: w.safetensors}\n";

std::string refusal(const std::string& yaml) {
  return usage_error([&] { parse_weight_mapping(yaml, "m.yaml"); });
}

TEST(WeightMapping, IsReadFromYaml) {
  const WeightMapping mapping = parse_weight_mapping(R"(file:
  weights: [a.safetensors, b.safetensors]
  ignored: ["*.num_batches_tracked"]
tensors:
  encoder.*: model.enc.*
  conv.weight: kernel | transpose 3 2 0 1
  head.weight: table | slice 0 0 10 | reshape 10 -1
  mixer.weight: [a, b, "| transpose 1 0"]
)",
                                                     "m.yaml");
  EXPECT_THAT(mapping.weights, ElementsAre("a.safetensors", "b.safetensors"));
  EXPECT_THAT(mapping.ignored, ElementsAre("*.num_batches_tracked"));
  ASSERT_EQ(mapping.rules.size(), 4U);
  EXPECT_EQ(mapping.rules[0].origins[0].name, "model.enc.*");
  EXPECT_EQ(mapping.rules[1].line, 6);
  EXPECT_EQ(mapping.rules[1].origins[0].steps[0].text(), "transpose 3 2 0 1");
  ASSERT_EQ(mapping.rules[2].origins[0].steps.size(), 2U);
  EXPECT_EQ(mapping.rules[2].origins[0].steps[1].text(), "reshape 10 -1");
  ASSERT_EQ(mapping.rules[3].origins.size(), 2U);
  EXPECT_EQ(mapping.rules[3].steps[0].text(), "transpose 1 0");
}

TEST(WeightMapping, MistakesAreToldWithTheirLine) {
  const auto rule = [](const std::string& text) { return kFile + ("tensors:\n  " + text + "\n"); };
  EXPECT_EQ(refusal("tensors: {a: b}"),
            "m.yaml: file.weights is missing: the safetensors file to read");
  EXPECT_EQ(refusal(""), "m.yaml: file.weights is missing: the safetensors file to read");
  EXPECT_EQ(refusal("file: {weight: x}"),
            "m.yaml:1: unknown key 'file.weight'. Did you mean "
            "'weights'?");
  EXPECT_THAT(refusal("other: {a: b}"), HasSubstr("sections are file and tensors, not 'other'"));
  EXPECT_THAT(refusal(rule("a: b | transpos 1 0")),
              HasSubstr("m.yaml:3: 'transpos 1 0' is no step: slice, reshape, transpose. Did you "
                        "mean 'transpose'?"));
  EXPECT_THAT(refusal(rule("a: b | transpose 1 x")), HasSubstr("'x' of 'transpose 1 x'"));
  EXPECT_THAT(refusal(rule("a: b | transpose -2 0")), HasSubstr("'-2' of"));
  EXPECT_THAT(refusal(rule("a: b | reshape 99999999999999999999")), HasSubstr("is no extent"));
  EXPECT_THAT(refusal(rule("a: b | reshape")), HasSubstr("has 0 numbers"));
  EXPECT_THAT(refusal(rule("a: b | slice 0 1")), HasSubstr("slice AXIS BEGIN END"));
  EXPECT_THAT(refusal(rule("a: b |")), HasSubstr("'' is no step"));
  EXPECT_THAT(refusal(rule("a: \"| transpose 1 0\"")), HasSubstr("names no tensor"));
  EXPECT_THAT(refusal(rule("a: [b, \"| transpose 1 0\", c]")), HasSubstr("names no tensor"));
  EXPECT_THAT(refusal(rule("a.*: b.*.*")), HasSubstr("'b.*.*' has more stars than 'a.*'"));
  EXPECT_THAT(refusal(rule("a: []")), HasSubstr("'a' is an empty list"));
  EXPECT_THAT(refusal(rule("a: b\n  a: c")), HasSubstr("m.yaml:4: 'a' is there twice"));
  EXPECT_THAT(refusal(rule("a: {b: c}")), HasSubstr("nothing goes deeper"));
  EXPECT_THAT(refusal(rule("a: *b")), HasSubstr("m.yaml:3: malformed YAML"));
  EXPECT_THAT(refusal(rule("a: " + std::string(2000, 'b'))), HasSubstr("2000 characters"));
  EXPECT_THAT(refusal(rule("? " + std::string(1030, 'b') + "\n  : a")),
              HasSubstr("1030 characters"));
}

TEST(WeightMapping, StarsStandForAsLittleAsTheyCan) {
  EXPECT_THAT(match_stars("a.*.c", "a.b.c"), Optional(ElementsAre("b")));
  EXPECT_THAT(match_stars("*.*", "a.b.c"), Optional(ElementsAre("a", "b.c")));
  EXPECT_THAT(match_stars("*.c", "a.b.c"), Optional(ElementsAre("a.b")));
  EXPECT_THAT(match_stars("abc", "abc"), Optional(ElementsAre()));
  EXPECT_THAT(match_stars("**", ""), Optional(ElementsAre("", "")));
  EXPECT_EQ(match_stars("abc", "abd"), std::nullopt);
  EXPECT_EQ(match_stars("a*", "ba"), std::nullopt);
  EXPECT_EQ(match_stars("", "a"), std::nullopt);
  EXPECT_EQ(match_stars("*", std::string(5000, 'a')), std::nullopt);
  // Where each star could end at each place, a search that goes back would take years.
  EXPECT_EQ(match_stars(std::string(500, '*') + "b", std::string(4000, 'a')), std::nullopt);
  EXPECT_EQ(with_stars("x.*.y.*", {"1", "2", "3"}), "x.1.y.2");
}

TEST(WeightMapping, StepsChangeShapesOrSayWhyNot) {
  using Kind = LayoutStep::Kind;
  const auto made = [](Kind kind, std::vector<int64_t> numbers, const Shape& shape) {
    return laid_out({kind, std::move(numbers)}, shape);
  };
  EXPECT_EQ(made(Kind::slice, {0, 2, 5}, {8, 3}), Shape({3, 3}));
  EXPECT_EQ(made(Kind::slice, {-1, 1, -1}, {8, 3}), Shape({8, 2}));
  EXPECT_EQ(made(Kind::reshape, {4, -1}, {8, 3}), Shape({4, 6}));
  EXPECT_EQ(made(Kind::reshape, {24}, {8, 3}), Shape({24}));
  EXPECT_EQ(made(Kind::transpose, {2, 0, 1}, {4, 5, 6}), Shape({6, 4, 5}));
  const auto refused = [&](Kind kind, std::vector<int64_t> numbers, const Shape& shape) {
    return usage_error([&] { made(kind, std::move(numbers), shape); });
  };
  EXPECT_EQ(refused(Kind::slice, {0, 2, 9}, {8, 3}), "'slice 0 2 9' of [8,3]: not within the axis");
  EXPECT_THAT(refused(Kind::slice, {0, 5, 2}, {8, 3}), HasSubstr("not within the axis"));
  EXPECT_THAT(refused(Kind::slice, {0, -1, 2}, {8, 3}), HasSubstr("not within the axis"));
  EXPECT_THAT(refused(Kind::slice, {2, 0, 1}, {8, 3}), HasSubstr("there is no such axis"));
  EXPECT_THAT(refused(Kind::slice, {-1, 0, 1}, {}), HasSubstr("there is no such axis"));
  EXPECT_THAT(refused(Kind::reshape, {5, -1}, {8, 3}), HasSubstr("do not divide"));
  EXPECT_THAT(refused(Kind::reshape, {0, -1}, {8, 3}), HasSubstr("do not divide"));
  EXPECT_THAT(refused(Kind::reshape, {-1, -1}, {8, 3}), HasSubstr("one extent may be -1"));
  EXPECT_THAT(refused(Kind::reshape, {5}, {8, 3}), HasSubstr("24 elements do not become 5"));
  EXPECT_THAT(refused(Kind::reshape, {int64_t{1} << 40, int64_t{1} << 40}, {8, 3}),
              HasSubstr("more elements than there are"));
  EXPECT_THAT(refused(Kind::transpose, {0, 0}, {8, 3}), HasSubstr("each axis must be named once"));
  EXPECT_THAT(refused(Kind::transpose, {0}, {8, 3}), HasSubstr("each axis must be named once"));
  EXPECT_THAT(refused(Kind::transpose, {-1, 0}, {8, 3}), HasSubstr("each axis must be named once"));
}

}  // namespace
}  // namespace fullbore
