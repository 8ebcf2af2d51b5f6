#include "fullbore/optim/parameter_groups.h"

#include <gtest/gtest.h>

#include "tests/support/evaluate.h"

namespace fullbore {
namespace {

const std::vector<std::string> kNames = {
    "token_embedding.weight", "layers.0.attention.qkv.weight", "layers.0.attention.qkv.bias",
    "layers.1.mlp.up.weight", "layers.1.mlp.up.bias",          "final_norm.weight"};

std::vector<int> assign(const std::vector<std::string>& patterns) {
  std::vector<ParameterGroup> groups;
  for (const std::string& pattern : patterns) groups.push_back({.match = pattern});
  return assign_groups(kNames, groups);
}

TEST(ParameterGroups, MatchWholeNamesAndTheFirstMatchCounts) {
  using Groups = std::vector<int>;
  EXPECT_EQ(assign({}), (Groups{-1, -1, -1, -1, -1, -1}));
  EXPECT_EQ(assign({"*.bias"}), (Groups{-1, -1, 0, -1, 0, -1}));
  EXPECT_EQ(assign({"*"}), (Groups{0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(assign({"layers.?.*.weight", "layers.*", "*norm*"}), (Groups{-1, 0, 1, 0, 1, 2}));
  EXPECT_EQ(assign({"final_norm.weight", "*"}), (Groups{1, 1, 1, 1, 1, 0}));
  EXPECT_EQ(assign({"*layers*up*weight*"}), (Groups{-1, -1, -1, 0, -1, -1}));
}

TEST(ParameterGroups, APatternWithoutAParameterNamesTheNearest) {
  EXPECT_EQ(usage_error([] { assign({"*.bais"}); }),
            "optim.groups: '*.bais' matches no parameter. The nearest is "
            "'layers.0.attention.qkv.bias'.");
  EXPECT_EQ(usage_error([] { assign({"bias"}); }),
            "optim.groups: 'bias' matches no parameter. The nearest is 'final_norm.weight'.");
  EXPECT_EQ(usage_error([] { assign({"final_norm.wait"}); }),
            "optim.groups: 'final_norm.wait' matches no parameter. The nearest is "
            "'final_norm.weight'.");
  EXPECT_EQ(usage_error([] {
              assign({"*.bias", "layers.*.bias"});
            }),
            "optim.groups: earlier groups take every parameter that 'layers.*.bias' matches; the "
            "first match counts");
}

TEST(ParameterGroups, AreReadFromText) {
  const ParameterGroup all = parse_parameter_group(
      " match=*.bias  weight_decay=0 learning_rate_multiplier=.5 algorithm=adamw ");
  EXPECT_EQ(all.match, "*.bias");
  EXPECT_EQ(all.weight_decay, 0.0);
  EXPECT_EQ(all.learning_rate_multiplier, 0.5);
  EXPECT_EQ(all.algorithm, "adamw");
  const ParameterGroup least = parse_parameter_group("match=a=b");
  EXPECT_EQ(least.match, "a=b");
  EXPECT_EQ(least.weight_decay, std::nullopt);
  EXPECT_EQ(least.learning_rate_multiplier, 1);
}

TEST(ParameterGroups, WrongTextsAreRefused) {
  const auto refusal = [](const char* text) {
    return usage_error([&] { parse_parameter_group(text); });
  };
  EXPECT_EQ(refusal(""), "match is missing: a pattern of parameter names such as *.bias");
  EXPECT_EQ(refusal("weight_decay=1"),
            "match is missing: a pattern of parameter names such as *.bias");
  EXPECT_EQ(refusal("*.bias"), "'*.bias' is no key=value");
  EXPECT_EQ(
      refusal("match=a weight_deca=1"),
      "unknown key 'weight_deca'. Did you mean 'weight_decay'? The keys of a group are match, "
      "weight_decay, learning_rate_multiplier, algorithm.");
  EXPECT_EQ(refusal("match=a match=b"), "match occurs twice");
  for (const char* value : {"-1", "nan", "inf", "1x", "", "1e999"})
    EXPECT_EQ(refusal((std::string("match=a weight_decay=") + value).c_str()),
              std::string("weight_decay is '") + value + "'; a number in [0, 1e+15] was expected");
  EXPECT_EQ(refusal("match=a algorithm=sgd"), "algorithm is 'sgd'; adamw or muon was expected");
}

}  // namespace
}  // namespace fullbore
