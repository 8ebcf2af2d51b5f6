#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "workloads/latentwire/question_prompts.h"
#include "workloads/latentwire/question_reader.h"

namespace fullbore::latentwire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

QuestionFile parsed(const std::string& text) {
  Result<QuestionFile> file = parse_questions(text, "file.json");
  EXPECT_TRUE(file.ok()) << file.error();
  return file.ok() ? std::move(file).value() : QuestionFile{};
}
std::string refusal(const std::string& text) {
  const Result<QuestionFile> file = parse_questions(text, "file.json");
  EXPECT_FALSE(file.ok()) << text;
  return file.ok() ? "" : file.error();
}

// Fields in another order than the data set's, a version, and questions of SQuAD 2.0 without an answer.
TEST(Questions, OfSquad) {
  const QuestionFile file = parsed(R"({"version": "v2.0", "data": [
    {"title": "A", "paragraphs": [
      {"qas": [
        {"question": "Who?", "id": "a1", "is_impossible": false,
         "answers": [{"text": "Ann", "answer_start": 0}, {"answer_start": 0, "text": "Ann"}, {"text": "Ann B.", "answer_start": 0}]},
        {"question": "Why?", "id": "a2", "is_impossible": true, "answers": [],
         "plausible_answers": [{"text": "no", "answer_start": 3}]}],
       "context": "Ann B. came."},
      {"context": "It \"rained\" in Z\u00fcrich.", "qas": [
        {"id": "a3", "question": "Where?", "answers": [{"text": "Z\u00fcrich", "answer_start": 15}]}]}]}]})");
  EXPECT_EQ(file.format, QuestionFormat::squad);
  EXPECT_EQ(file.unanswerable, 1);
  ASSERT_EQ(file.questions.size(), 2U);
  EXPECT_EQ(file.questions[0].id, "a1");
  EXPECT_THAT(file.questions[0].answers, ElementsAre("Ann", "Ann B."));
  EXPECT_EQ(file.contexts[file.questions[0].context], "Ann B. came.");
  EXPECT_EQ(file.contexts[file.questions[1].context], "It \"rained\" in Zürich.");
  const auto prompts = question_prompts(std::make_shared<const QuestionFile>(file), 1, 1);
  EXPECT_EQ(prompts->prompt(0).source(), "Context: It \"rained\" in Zürich.\nQuestion: Where?\n");
  const auto bytes = [](const std::string& text) { return static_cast<int64_t>(text.size()); };
  EXPECT_EQ(prompts->most_in_answer(bytes), 8);
  EXPECT_EQ(prompts->most_in_source(bytes), bytes(prompts->prompt(0).source()));
  EXPECT_NE(prompts->identity(),
            question_prompts(std::make_shared<const QuestionFile>(file), 0, 1)->identity());
}

TEST(Questions, OfHotpotTakeSupportAndItsNeighbours) {
  const QuestionFile file =
      parsed(R"([{"_id": "h1", "question": "Which?", "answer": "yes", "type": "comparison",
    "supporting_facts": [["B", 2], ["Nowhere", 0], ["B", 9], ["A", 0]],
    "context": [["A", ["a0.", " a1.", " a2."]], ["B", ["b0.", "b1. ", " b2\n\tx.", "b3.", "b4."]], ["C", ["c0."]]]}])");
  EXPECT_EQ(file.format, QuestionFormat::hotpot);
  ASSERT_EQ(file.contexts.size(), 1U);
  EXPECT_EQ(file.contexts[0], "b1. b2 x. b3. a0. a1. a2.") << "5 of support, and one to fill";
  const auto prompts = question_prompts(std::make_shared<const QuestionFile>(file), 0, 1);
  EXPECT_EQ(prompts->prompt(0).source(), "Question: Which?\nContext: b1. b2 x. b3. a0. a1. a2.\n");
}

TEST(Questions, OfHotpotAreFilledUpFromThreeParagraphsAndCut) {
  std::vector<HotpotParagraph> paragraphs(4);
  for (int p = 0; p < 4; ++p)
    paragraphs[static_cast<size_t>(p)] = {std::string(1, "WXYZ"[p]), {"s"}};
  EXPECT_EQ(hotpot_context(paragraphs, {}), "s s s") << "the fourth is not looked at";
  paragraphs[0].sentences.assign(5, "t");
  EXPECT_EQ(hotpot_context(paragraphs, {}), "t t t t s s") << "four of a paragraph at most";
  EXPECT_EQ(hotpot_context(paragraphs, {{"Z", 0}}), "s t t t t s");
  std::string long_one;
  for (int i = 0; i < 1500; ++i) long_one += "ü";
  const std::string cut = hotpot_context({{"W", {long_one, long_one}}}, {});
  EXPECT_EQ(cut.size(), 2 * 1500 + 1 + 2 * 499U) << "2,000 characters, none of them half";
}

TEST(Questions, OfLinesAsMirrorsAndPeopleWriteThem) {
  const std::string common = R"("context": "c", "question": "q?")";
  const QuestionFile file = parsed(
      "\xEF\xBB\xBF{\"id\": 7, " + common + R"(, "answers": ["x", "y", " "]})" + "\r\n\n" +
      "{\"title\": \"t\", " + common + R"(, "answers": {"text": ["z"], "answer_start": [3]}})" +
      "\n" + "{" + common + R"(, "answers": [{"text": "w", "answer_start": 1}]})" + "\n" +
      R"({"id": "m", "question": "q?", "answer": "v", "supporting_facts": {"title": ["T"], "sent_id": [0]},)"
      R"( "context": {"title": ["T"], "sentences": [["s0.", "s1."]]}})");
  EXPECT_EQ(file.format, QuestionFormat::lines);
  ASSERT_EQ(file.questions.size(), 4U);
  EXPECT_THAT(file.questions[0].answers, ElementsAre("x", "y"));
  EXPECT_EQ(file.questions[0].id, "7");
  EXPECT_THAT(file.questions[1].answers, ElementsAre("z"));
  EXPECT_EQ(file.questions[1].id, "2") << "its number, where it has none";
  EXPECT_THAT(file.questions[2].answers, ElementsAre("w"));
  EXPECT_THAT(file.contexts, ElementsAre("c", "s0. s1.")) << "one that is shared is kept once";
}

TEST(Questions, RefuseWithThePlaceAndTheQuestion) {
  EXPECT_EQ(refusal(""), "file.json: there is no question with an answer");
  EXPECT_EQ(refusal(R"({"data": []})"), "file.json: there is no question with an answer");
  EXPECT_EQ(refusal(R"({"question": "q", "context": "c", "answers": []})"),
            "file.json: there is no question with an answer (1 have none)");
  EXPECT_EQ(
      refusal("\n{\"id\": \"a\", \"questions\": \"q\", \"context\": \"c\", \"answers\": [\"x\"]}"),
      "file.json:2: byte 63: question 'a': there is no field 'question'. Did you mean "
      "'questions'?");
  EXPECT_EQ(
      refusal(R"({"id": "a", "question": 3})"),
      "file.json:1: byte 24: question 'a': the field 'question' is a number; a text was expected");
  EXPECT_EQ(refusal(R"({"id": "a", "question": " ", "context": "c", "answers": ["x"]})"),
            "file.json:1: byte 62: question 'a': the question is empty");
  EXPECT_THAT(refusal("not JSON"), HasSubstr("file.json:1: byte 0: "));
  const std::string squad =
      R"({"data": [{"paragraphs": [{"qas": [{"id": "b", "question": "q", "answers": [)";
  EXPECT_THAT(refusal(squad), HasSubstr("file.json: byte "));
  EXPECT_THAT(refusal(squad + "{}]}]}]}]}"),
              HasSubstr("question 'b': an answer has no field 'text'"));
  EXPECT_THAT(refusal(squad + R"({"text": "x"}]}]}]}]})"),
              HasSubstr("question 'b': its paragraph has no field 'context'"));
  const std::string hotpot = R"([{"_id": "h", "question": "q", "answer": "x", "context": )";
  EXPECT_THAT(refusal(hotpot + R"([["T"]]}])"),
              HasSubstr("question 'h': a paragraph is a title and sentences"));
  EXPECT_THAT(refusal(hotpot + R"({"title": ["T"], "sentences": []}}])"),
              HasSubstr("there are 1 titles, and sentences of 0 paragraphs"));
  EXPECT_THAT(refusal(hotpot + R"([], "supporting_facts": [["T", "0"]]}])"),
              HasSubstr("the field 'number' is a text; a whole number was expected"));
}

}  // namespace
}  // namespace fullbore::latentwire
