#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "fullbore/base/error.h"
#include "fullbore/data/split_mix.h"
#include "workloads/long_context/associative_recall.h"
#include "workloads/long_context/needle_example.h"

namespace fullbore::long_context {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(SplitMix64, IsTheReference) {
  SplitMix64 draws(42);
  EXPECT_EQ(draws.bits(), 0xbdd732262feb6e95U);
  EXPECT_EQ(draws.bits(), 0x28efe333b266f103U);
  EXPECT_EQ(draws.bits(), 0x47526757130f9f52U);
  SplitMix64 letters(42);
  std::vector<uint64_t> drawn;
  for (int i = 0; i < 9; ++i) drawn.push_back(letters.below(26));
  EXPECT_THAT(drawn, ElementsAre(19, 4, 7, 8, 0, 22, 5, 20, 8));
}

TEST(SplitMix64, ChoosesDistinctNumbersOfTheRange) {
  const std::vector<int64_t> chosen = SplitMix64(7).choose(5, 10, 10);
  EXPECT_EQ(std::set<int64_t>(chosen.begin(), chosen.end()).size(), 10U);
  EXPECT_EQ(*std::ranges::min_element(chosen), 5);
  EXPECT_EQ(*std::ranges::max_element(chosen), 14);
}

TEST(NeedleExample, IsTheReference) {
  const NeedleExample example = make_needle_example(42, {.characters = 96});
  ASSERT_EQ(example.questions.size(), 1U);
  EXPECT_EQ(
      example.text + example.questions[0].text,
      "with to his it it as to of his of \nTEHI: AWFUI.\nfor be of with with of in for had be "
      "for \nTEHI: ");
  ASSERT_EQ(example.questions[0].answers.size(), 1U);
  EXPECT_EQ(example.questions[0].answers[0].text, "AWFUI");
  EXPECT_EQ(example.questions[0].room, 5);
}

class EveryTask : public ::testing::TestWithParam<NeedleTask> {
 protected:
  NeedleOptions options(int64_t characters = 777) const {
    NeedleOptions options{.task = GetParam(), .characters = characters, .depth = 0.3};
    if (GetParam() != NeedleTask::single) options.needles = 4;
    return options;
  }
};
INSTANTIATE_TEST_SUITE_P(Tasks, EveryTask,
                         ::testing::Values(NeedleTask::single, NeedleTask::multi_needle,
                                           NeedleTask::multi_key, NeedleTask::multi_value,
                                           NeedleTask::multi_query, NeedleTask::variable_tracking));

TEST_P(EveryTask, HasTheLengthThatIsAskedFor) {
  for (const int64_t characters : {500, 777, 2048}) {
    const NeedleExample example = make_needle_example(3, options(characters));
    EXPECT_EQ(example.text.size() + example.questions.front().text.size(),
              static_cast<size_t>(characters));
  }
}

TEST_P(EveryTask, HoldsItsAnswersWhereItSays) {
  const NeedleExample example = make_needle_example(11, options(4000));
  for (const NeedleQuestion& question : example.questions)
    for (const NeedleAnswer& answer : question.answers) {
      const size_t at = example.text.find(answer.text);
      ASSERT_NE(at, std::string::npos) << answer.text;
      EXPECT_NEAR(static_cast<double>(at) / static_cast<double>(example.text.size()), answer.depth,
                  0.06);
    }
}

TEST_P(EveryTask, TheControlHidesEveryAnswerAndKeepsTheQuestionAndTheLength) {
  NeedleOptions hidden = options();
  hidden.hide_answers = true;
  const NeedleExample example = make_needle_example(11, options());
  const NeedleExample control = make_needle_example(11, hidden);
  EXPECT_EQ(control.text.size(), example.text.size());
  EXPECT_EQ(control.questions.front().text, example.questions.front().text);
  for (const NeedleQuestion& question : example.questions)
    for (const NeedleAnswer& answer : question.answers)
      EXPECT_EQ(control.text.find(answer.text), std::string::npos);
}

TEST_P(EveryTask, IsSpelledInTheAlphabet) {
  const NeedleExample example = make_needle_example(5, options());
  EXPECT_EQ((example.text + example.questions.front().text).find_first_not_of(needle_alphabet()),
            std::string::npos);
  EXPECT_EQ(needle_alphabet().find_first_not_of(shakespeare_alphabet()), std::string::npos);
  EXPECT_EQ(shakespeare_alphabet().size(), 65U);
}

TEST_P(EveryTask, IsAFunctionOfItsKey) {
  const std::string one = make_needle_example(5, options()).text;
  EXPECT_EQ(make_needle_example(5, options()).text, one);
  EXPECT_NE(make_needle_example(6, options()).text, one);
}

TEST(NeedleExample, StandsAtEitherEnd) {
  EXPECT_TRUE(make_needle_example(1, {.characters = 200, .depth = 0}).text.starts_with('\n'));
  const std::string last = make_needle_example(1, {.characters = 200, .depth = 1}).text;
  EXPECT_LE(last.size() - last.rfind('.'), 7U) << "behind the last space of the filler";
}

TEST(NeedleExample, AsksForSomeOfMany) {
  const NeedleExample one = make_needle_example(
      9, {.task = NeedleTask::multi_needle, .characters = 600, .needles = 10, .asked = 1});
  EXPECT_EQ(one.questions.size(), 1U);
  const NeedleExample three = make_needle_example(
      9, {.task = NeedleTask::multi_query, .characters = 600, .needles = 10, .asked = 3});
  ASSERT_EQ(three.questions.size(), 1U);
  EXPECT_EQ(three.questions[0].answers.size(), 3U);
  EXPECT_EQ(three.questions[0].text.size(), 1 + 3 * 4 + 2 * 2 + 2U);
}

TEST(NeedleExample, ChainsLeadFromNameToName) {
  const NeedleExample example = make_needle_example(
      9, {.task = NeedleTask::variable_tracking, .characters = 900, .needles = 2, .hops = 3});
  const NeedleQuestion& question = example.questions.front();
  ASSERT_EQ(question.answers.size(), 4U);
  std::string value = question.text.substr(1, 5);
  for (const NeedleAnswer& answer : question.answers) {
    EXPECT_THAT(example.text, HasSubstr("\n" + answer.text + ": " + value + ".\n"));
    value = answer.text;
  }
}

TEST(NeedleExample, LiesInAHaystackOfOnesOwn) {
  const std::string hay = "All the world is a stage and all the men and women merely players. ";
  const NeedleExample example = make_needle_example(4, {.characters = 300, .haystack = hay});
  EXPECT_EQ(example.text.size() + example.questions[0].text.size(), 300U);
  EXPECT_THAT(example.text, HasSubstr("men and women"));
  EXPECT_THAT(example.text, HasSubstr(": " + example.questions[0].answers[0].text + ".\n"));
}

TEST(NeedleExample, RefusesWhatDoesNotGo) {
  const auto message = [](const NeedleOptions& options) {
    try {
      make_needle_example(1, options);
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
    return std::string("taken");
  };
  EXPECT_THAT(message({.characters = 20}), HasSubstr("take 21 characters, the text has 20"));
  EXPECT_EQ(message({.characters = 21}), "taken");
  EXPECT_THAT(message({.depth = 1.5}), HasSubstr("a depth of 1.5"));
  EXPECT_THAT(message({.needles = 2}), HasSubstr("multi-needle and multi-key have several"));
  EXPECT_THAT(message({.task = NeedleTask::multi_needle, .needles = 3, .asked = 4}),
              HasSubstr("4 of 3 needles"));
  EXPECT_THAT(message({.task = NeedleTask::multi_key, .needles = 3, .asked = 1}),
              HasSubstr("cannot be chosen"));
}

TEST(FoundAnswers, ExactForOneWordsForSeveral) {
  const NeedleQuestion one{"", {{"AWFUI", 0.5}}, 5};
  EXPECT_THAT(found_answers(one, "AWFUI. "), ElementsAre(true));
  EXPECT_THAT(found_answers(one, " AWFUI"), ElementsAre(false));
  const NeedleQuestion two{"", {{"AB", 0.2}, {"CD", 0.8}}, 6};
  EXPECT_THAT(found_answers(two, "XCD, AB."), ElementsAre(true, false));
  EXPECT_THAT(found_answers(two, "CDX CD ABC"), ElementsAre(false, true));
}

TEST(AssociativeRecall, IsTheReference) {
  const RecallExample example =
      make_recall_example(42, {.vocabulary = 32, .length = 16, .pairs = 3});
  EXPECT_THAT(example.tokens, ElementsAre(12, 21, 4, 17, 6, 30, 0, 0, 12, 0, 0, 0, 6, 0, 4, 0));
  EXPECT_THAT(example.targets,
              ElementsAre(-1, -1, -1, -1, -1, -1, -1, -1, 21, -1, -1, -1, 30, -1, 17, -1));
}

TEST(AssociativeRecall, EveryKeyComesAgainOnce) {
  const RecallSizes sizes{.vocabulary = 8192, .length = 256, .pairs = 64};
  const RecallExample example = make_recall_example(1, sizes);
  std::set<int32_t> asked;
  for (size_t at = 0; at < example.targets.size(); ++at) {
    if (example.targets[at] < 0) continue;
    asked.insert(example.tokens[at]);
    size_t pair = 0;
    while (example.tokens[2 * pair] != example.tokens[at]) ++pair;
    ASSERT_LT(pair, 64U);
    EXPECT_EQ(example.tokens[2 * pair + 1], example.targets[at]);
    EXPECT_GE(example.targets[at], 4096);
    EXPECT_LT(example.tokens[at], 4096);
  }
  EXPECT_EQ(asked.size(), 64U);
}

TEST(AssociativeRecall, RefusesWhatDoesNotFit) {
  const auto message = [](const RecallSizes& sizes) {
    try {
      check_recall_sizes(sizes);
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
    return std::string("taken");
  };
  EXPECT_EQ(message({.vocabulary = 10, .length = 16, .pairs = 4}), "taken");
  EXPECT_THAT(message({.vocabulary = 9, .length = 16, .pairs = 4}), HasSubstr("has 3 keys"));
  EXPECT_THAT(message({.length = 14, .pairs = 4}), HasSubstr("16 tokens are needed"));
  EXPECT_THAT(message({.length = 17, .pairs = 4}), HasSubstr("even number"));
  EXPECT_THAT(message({.pairs = 0}), HasSubstr("at least one pair"));
}

}  // namespace
}  // namespace fullbore::long_context
