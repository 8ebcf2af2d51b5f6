#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "workloads/long_context/accuracy.h"
#include "workloads/long_context/answer_scores.h"

namespace fullbore::long_context {
namespace {

using ::testing::ElementsAre;
using Texts = std::vector<std::string>;

TEST(AnswerScores, TheExampleOfTheLiterature) {
  const Texts reference = {"a cat on a mat"};
  EXPECT_NEAR(token_f1("The cat sat on the mat", reference), 6.0 / 7, 1e-12);
  EXPECT_NEAR(rouge_l("The cat sat on the mat", reference), 6.0 / 11, 1e-12);
}

TEST(AnswerScores, Normalisation) {
  EXPECT_EQ(normalized_answer("  The  Cat's\tan-swer, is: a DOG! "), "cats answer is dog");
  EXPECT_EQ(normalized_answer("the a an"), "");
  EXPECT_EQ(normalized_answer("theatre"), "theatre") << "a word that begins like an article";
  EXPECT_THAT(normalized_characters("答案 是：A，b。"), ElementsAre("答", "案", "是", "a", "b"));
}

TEST(AnswerScores, F1TakesTheBestReferenceAndCountsWordsOnce) {
  EXPECT_EQ(token_f1("Paris", Texts{"London", "Paris"}), 1);
  EXPECT_NEAR(token_f1("very very good", Texts{"very good indeed"}), 2.0 / 3, 1e-12);
  EXPECT_EQ(token_f1("", Texts{"Paris"}), 0);
  EXPECT_EQ(token_f1("Paris", Texts{}), 0);
  EXPECT_NEAR(character_f1("北京市", Texts{"北京"}), 0.8, 1e-12);
}

TEST(AnswerScores, RougeOfSummariesIsOfLines) {
  // Lin 2004, section 3.2: the reference w1..w5, the candidate lines w1 w2 w6 w7 w8 and w1 w3 w8 w9
  // w5: their union is w1 w2 w3 w5, of recall 4/5 and precision 4/10.
  EXPECT_NEAR(rouge_l_sum("w1 w2 w6 w7 w8\nw1 w3 w8 w9 w5", Texts{"w1 w2 w3 w4 w5"}),
              2 * 0.8 * 0.4 / 1.2, 1e-12);
  EXPECT_NEAR(rouge_l("w1 w2 w6 w7 w8 w1 w3 w8 w9 w5", Texts{"w1 w2 w3 w4 w5"}), 8.0 / 15, 1e-12);
  EXPECT_NEAR(rouge_l_characters("今天天气", Texts{"今天气"}), 6.0 / 7, 1e-12);
  EXPECT_EQ(rouge_l_sum("", Texts{"a"}), 0);
  EXPECT_EQ(rouge_l_sum("same text\nin lines", Texts{"same text\nin lines"}), 1);
}

// workloads/long_context/tests/golden/rouge_golden.py prints these.
TEST(AnswerScores, RougeIsThatOfTheReferenceProgram) {
  struct Row {
    std::string prediction;
    std::string reference;
    double l;
    double sum;
  };
  const std::vector<Row> rows = {
      {"the quick brown fox jumps over the dog\nit was quick, very quick",
       "a quick fox jumped over a lazy dog.\nThe dog was not amused; the fox was quick",
       0.466666666667, 0.466666666667},
      {"It's 3.5 times as fast\nand smaller by half\nand half",
       "Smaller by half, and 3.5 times as fast\nhalf and half", 0.64, 0.8},
      {"a b c d\nb c d e\na a b", "a b a\nd c b a\ne e", 0.5, 0.5}};
  for (const Row& row : rows) {
    EXPECT_NEAR(rouge_l(row.prediction, Texts{row.reference}), row.l, 1e-11) << row.prediction;
    EXPECT_NEAR(rouge_l_sum(row.prediction, Texts{row.reference}), row.sum, 1e-11)
        << row.prediction;
  }
}

TEST(AnswerScores, EditSimilarityIsOfInsertionsAndDeletions) {
  EXPECT_EQ(edit_similarity("kitten", "sitting"), 0.62);  // 8 of 13, a replacement counts twice
  EXPECT_EQ(edit_similarity("", ""), 1);
  EXPECT_EQ(edit_similarity("a", ""), 0);
  EXPECT_EQ(edit_similarity("äö", "äx"), 0.5) << "of characters, not of bytes";
  EXPECT_EQ(code_similarity("# a comment\n```\nreturn x\nmore", Texts{"return x"}), 1);
}

TEST(AnswerScores, Classification) {
  const Texts classes = {"city", "city of birth", "state"};
  EXPECT_EQ(classification("city of birth", Texts{"city of birth"}, classes), 1);
  EXPECT_EQ(classification("city or state", Texts{"city"}, classes), 0.5);
  EXPECT_EQ(classification("state", Texts{"city"}, classes), 0);
}

TEST(AnswerScores, NumbersInAnswers) {
  EXPECT_THAT(numbers_in("a12b 007, 3.50"), ElementsAre("12", "7", "3", "50"));
  EXPECT_EQ(count_score("There are 5, perhaps 6", Texts{"5"}), 0.5);
  EXPECT_EQ(count_score("none", Texts{"5"}), 0);
  EXPECT_EQ(retrieval_score("Paragraph 12", Texts{"Paragraph 12"}, "Paragraph"), 1);
  EXPECT_EQ(retrieval_score("12 or 1 or 2", Texts{"Paragraph 1"}, "Paragraph"), 1.0 / 3);
  EXPECT_EQ(retrieval_score("段落3", Texts{"段落3"}, "段落"), 1);
}

TEST(Wilson, IsTheClosedForm) {
  // The roots of (p - 0.8)^2 = z^2 p (1 - p) / 10.
  const Interval interval = wilson_interval(8, 10);
  EXPECT_NEAR(interval.low, 0.4901624715, 1e-9);
  EXPECT_NEAR(interval.high, 0.9433178485, 1e-9);
  EXPECT_EQ(wilson_interval(0, 10).low, 0);
  EXPECT_NEAR(wilson_interval(0, 10).high, 0.2775327999, 1e-9);
  EXPECT_EQ(wilson_interval(10, 10).high, 1);
  EXPECT_EQ(wilson_interval(0, 0).high, 1);
}

TEST(UsableLengths, AreInterpolatedBothWays) {
  const std::vector<LengthAccuracy> measured = {
      {1000, .95}, {2000, .92}, {4000, .88}, {8000, .85}, {16000, .78}, {32000, .65}, {64000, .45}};
  EXPECT_NEAR(usable_length(measured, 0.8, Interpolation::linear).length, 13714.29, 0.005);
  EXPECT_NEAR(usable_length(measured, 0.8).length, 13125.37, 0.005);
  EXPECT_EQ(usable_length(measured, 0.96).length, 0);
  const UsableLength all = usable_length(measured, 0.4);
  EXPECT_EQ(all.length, 64000);
  EXPECT_TRUE(all.at_least);
  EXPECT_EQ(usable_length(measured, 0.85).length, 8000) << "at the threshold is not below it";
  EXPECT_TRUE(
      usable_length(std::vector<LengthAccuracy>{{1000, 0.9}, {2000, 0.8}, {4000, 0.85}}, 0.8)
          .at_least);
}

TEST(UsableLengths, EndAtTheFirstFall) {
  const std::vector<LengthAccuracy> measured = {{1000, .9}, {2000, .7}, {4000, .9}};
  EXPECT_NEAR(usable_length(measured, 0.8, Interpolation::linear).length, 1500, 1e-9);
}

TEST(Flags, NameWhatIsWrong) {
  const std::vector<DepthAccuracy> cells = {{1000, 0, 1},   {1000, 0.5, 0.85}, {1000, 1, 1},
                                            {4000, 0, 0.8}, {4000, 0.5, 0.7},  {4000, 1, 0.8}};
  const RetrievalFlags flags = retrieval_flags(cells, 4000, false);
  ASSERT_TRUE(flags.below_at_claimed.has_value());
  EXPECT_NEAR(flags.below_at_claimed->accuracy, 2.3 / 3, 1e-12);
  ASSERT_EQ(flags.lost_in_the_middle.size(), 1U) << "ten points are not more than ten";
  EXPECT_EQ(flags.lost_in_the_middle[0].length, 1000);
  EXPECT_FALSE(flags.multi_needle_below_half);
  EXPECT_FALSE(retrieval_flags(cells, 1000, true).below_at_claimed.has_value());
  const std::vector<DepthAccuracy> low = {{1000, 0.5, 0.4}};
  EXPECT_TRUE(retrieval_flags(low, 0, true).multi_needle_below_half);
  EXPECT_FALSE(retrieval_flags(low, 0, false).multi_needle_below_half);
}

TEST(Gates, OpenAboveTheirBounds) {
  EXPECT_EQ(needle_gate(std::vector<LengthAccuracy>{{8192, 1}}), Gate::not_measured);
  EXPECT_EQ(needle_gate(std::vector<LengthAccuracy>{{8192, 0}, {16384, 0.81}}), Gate::passed);
  EXPECT_EQ(needle_gate(std::vector<LengthAccuracy>{{16000, 0.8}}), Gate::failed);
  EXPECT_EQ(longbench_gate(0, 0), Gate::not_measured);
  EXPECT_EQ(longbench_gate(0.6, 10), Gate::failed);
  EXPECT_EQ(longbench_gate(0.61, 10), Gate::passed);
}

}  // namespace
}  // namespace fullbore::long_context
