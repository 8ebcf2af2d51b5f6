#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "fullbore/base/error.h"
#include "tests/support/scratch_folder.h"
#include "workloads/long_context/benchmark_files.h"

namespace fullbore::long_context {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Pair;

class BenchmarkFiles : public ::testing::Test {
 protected:
  std::string put(const std::string& name, const std::string& text) const {
    const std::string path = folder_.path() + "/" + name;
    std::ofstream(path) << text;
    return path;
  }
  /// All items, or the message.
  static std::string read(const std::string& path, Benchmark benchmark,
                          std::vector<BenchmarkItem>& items, const std::string& task = "") {
    Result<BenchmarkReader> reader = BenchmarkReader::open(path, benchmark, task);
    if (!reader) return reader.error();
    for (;;) {
      BenchmarkItem item;
      Result<bool> more = reader.value().next(item);
      if (!more) return more.error();
      if (!more.value()) return "";
      items.push_back(std::move(item));
    }
  }
  std::string refusal(const std::string& name, const std::string& text,
                      Benchmark benchmark = Benchmark::longbench) const {
    std::vector<BenchmarkItem> items;
    return read(put(name, text), benchmark, items);
  }

  testing::ScratchFolder folder_;
};

constexpr const char* kOne =
    R"({"input": "Who?", "context": "Ann did.", "answers": ["Ann", "she"], "length": 2, )"
    R"("dataset": "hotpotqa", "language": "en", "all_classes": null, "_id": "x1"})";
constexpr const char* kTwo =
    R"({"_id": "y1", "domain": "Law", "sub_domain": "x", "difficulty": "hard", "length": "long", )"
    R"("question": "Which?", "choice_A": "a", "choice_B": "b", "choice_C": "c", "choice_D": "d", )"
    R"("answer": "C", "context": "long text"})";

TEST_F(BenchmarkFiles, ReadsLongBench) {
  std::vector<BenchmarkItem> items;
  ASSERT_EQ(
      read(put("lb.jsonl", std::string(kOne) + "\n\n" + kTwo + "\n"), Benchmark::longbench, items),
      "");
  ASSERT_EQ(items.size(), 2U) << "an empty line is none";
  EXPECT_EQ(items[0].id, "x1");
  EXPECT_EQ(items[0].task, "hotpotqa");
  EXPECT_THAT(items[0].references, ElementsAre("Ann", "she"));
  EXPECT_EQ(items[0].metric, AnswerMetric::f1);
  EXPECT_EQ(items[0].room, 32);
  EXPECT_EQ(items[0].prompt(), "Ann did.\n\nQuestion: Who?\nAnswer:");
  EXPECT_EQ(answer_score(items[0], " Ann"), 1);
  EXPECT_EQ(items[1].metric, AnswerMetric::stated_choice);
  EXPECT_THAT(items[1].groups, ElementsAre(Pair("difficulty", "hard"), Pair("length", "long"),
                                           Pair("domain", "Law")));
  EXPECT_THAT(items[1].prompt(), HasSubstr("(B) b\n(C) c\n"));
  EXPECT_EQ(answer_score(items[1], "The correct answer is (C)."), 1);
}

TEST_F(BenchmarkFiles, ReadsAJsonListHoweverItIsBroken) {
  for (const std::string& text :
       {std::string("[") + kOne + "," + kTwo + "]",
        std::string("[\n") + kOne + ",\n" + kTwo + "\n]\n",
        std::string(" [{\n\"input\": \"]}\\\"\",\n\"context\": \"{[\",\n \"answers\": \"a\", "
                    "\"dataset\": \"lcc\"\n}\n,") +
            kTwo + "]"}) {
    std::vector<BenchmarkItem> items;
    EXPECT_EQ(read(put("list.json", text), Benchmark::longbench, items), "");
    ASSERT_EQ(items.size(), 2U);
    EXPECT_EQ(items[1].id, "y1");
  }
  EXPECT_THAT(refusal("a.json", "[\n{\"input\": 1}]"), HasSubstr("a.json:2: "));
  EXPECT_THAT(refusal("b.json", std::string("[") + kOne), EndsWith("the list has no end"));
  EXPECT_THAT(refusal("c.json", std::string("[") + kOne + "] x"),
              EndsWith("nothing was expected behind the list"));
  EXPECT_THAT(refusal("d.json", "[1]"), EndsWith("an object was expected in the list"));
}

TEST_F(BenchmarkFiles, ReadsInfiniteBench) {
  std::vector<BenchmarkItem> items;
  ASSERT_EQ(read(put("passkey.jsonl", R"({"id": 3, "context": "12 hides", "input": "The key is", )"
                                      R"("answer": "12", "options": []})"),
                 Benchmark::infinitebench, items),
            "");
  ASSERT_EQ(read(put("any.jsonl", R"({"context": "c", "input": "Which?", "answer": ["two"], )"
                                  R"("options": ["one", "two", "three", "four"]})"),
                 Benchmark::infinitebench, items, "longbook_choice_eng"),
            "");
  ASSERT_EQ(
      read(put("math_calc.jsonl", R"({"context": "c", "input": "1+1", "answer": [2, -3, 4]})"),
           Benchmark::infinitebench, items),
      "");
  ASSERT_EQ(read(put("math_find.jsonl", R"({"context": "c", "input": "i", "answer": 0.5})"),
                 Benchmark::infinitebench, items),
            "");
  EXPECT_EQ(items[0].id, "3");
  EXPECT_EQ(answer_score(items[0], "is 012, not 7"), 1);
  EXPECT_THAT(items[1].references, ElementsAre("B", "two"));
  EXPECT_EQ(answer_score(items[1], "B"), 1);
  EXPECT_EQ(answer_score(items[1], " two\n"), 1);
  EXPECT_EQ(answer_score(items[1], "A or (B)"), 0) << "the first letter counts";
  EXPECT_NEAR(answer_score(items[2], "[2, -3, 5]"), 2.0 / 3, 1e-12);
  EXPECT_EQ(answer_score(items[3], "about 0.50."), 1);
}

TEST_F(BenchmarkFiles, RefusesWhatIsMalformedByFileLineAndField) {
  EXPECT_THAT(refusal("a.jsonl", std::string(kOne) + "\n{\"input\": "),
              HasSubstr("a.jsonl:2: not JSON: byte 10: "));
  EXPECT_THAT(
      refusal("b.jsonl", R"({"input": "", "context": "", "answer": [], "dataset": "lcc"})"),
      HasSubstr("b.jsonl:1: there is no field 'answers'. Did you mean 'answer'? The fields are"));
  EXPECT_THAT(refusal("c.jsonl", R"({"input": 5, "context": "", "answers": [], "dataset": "lcc"})"),
              HasSubstr("the field 'input' is a number; a text was expected"));
  EXPECT_THAT(
      refusal("d.jsonl", R"({"input": "", "context": "", "answers": ["a"], "dataset": "hotpotq"})"),
      HasSubstr(
          "the field 'dataset' is 'hotpotq', no task of LongBench. Did you mean 'hotpotqa'?"));
  EXPECT_THAT(
      refusal("e.jsonl", R"({"input": "", "context": "", "answers": [true], "dataset": "lcc"})"),
      HasSubstr("the field 'answers' holds true or false; texts were expected"));
  EXPECT_THAT(refusal("f.jsonl", "[]\n[]"), HasSubstr("nothing was expected behind the list"));
  EXPECT_THAT(refusal("g.jsonl", R"({"a": 1, "a": 2})"), HasSubstr("the field 'a' is there twice"));
  std::string changed = kTwo;
  changed.replace(changed.find("hard"), 4, "hart");
  EXPECT_THAT(refusal("h.jsonl", changed),
              HasSubstr("'difficulty' is 'hart'; one of easy, hard was expected. Did you mean"));
  EXPECT_THAT(refusal("code_debug.jsonl",
                      R"({"context": "", "input": "", "answer": ["x"], "options": ["a", "b"]})",
                      Benchmark::infinitebench),
              HasSubstr("'answer' is none of the 'options'"));
  EXPECT_THAT(
      refusal("trec.jsonl", R"({"input": "", "context": "", "answers": ["a"], "dataset": "trec"})"),
      HasSubstr("'trec' needs the field 'all_classes'"));
  try {
    refusal("passkeys.jsonl", "", Benchmark::infinitebench);
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("'passkeys' is no task of InfiniteBench. Did you mean"));
  }
  EXPECT_THAT(BenchmarkReader::open("absent.jsonl", Benchmark::longbench).error(),
              HasSubstr("absent.jsonl"));
}

TEST(Choices, AreParsed) {
  EXPECT_EQ(stated_choice("I think. **The correct answer is (B)**"), 'B');
  EXPECT_EQ(stated_choice("The correct answer is D."), 'D');
  EXPECT_EQ(stated_choice("The correct answer is (E)"), std::nullopt);
  EXPECT_EQ(stated_choice("B"), std::nullopt);
  EXPECT_EQ(stated_choice("The correct answer is "), std::nullopt);
  EXPECT_EQ(chosen_letter("B. because", 4), 'B');
  EXPECT_EQ(chosen_letter("Between A and C, the answer is: C", 4), 'C');
  EXPECT_EQ(chosen_letter("of A and B", 4), 'B');
  EXPECT_EQ(chosen_letter("E", 4), std::nullopt);
  EXPECT_EQ(chosen_letter("Ba", 4), std::nullopt);
  EXPECT_THAT(integers_in("-7, 3-4, a-0012"), ElementsAre("-7", "3", "4", "-12"));
}

BenchmarkItem item_of(AnswerMetric metric, std::vector<std::string> references,
                      std::vector<std::string> options = {}) {
  BenchmarkItem item;
  item.metric = metric;
  item.references = std::move(references);
  item.options = std::move(options);
  return item;
}

TEST(Choices, AMissingStatementMayCountAsAGuess) {
  const BenchmarkItem item = item_of(AnswerMetric::stated_choice, {"A"});
  EXPECT_EQ(answer_score(item, "no idea"), 0);
  EXPECT_EQ(answer_score(item, "no idea", true), 0.25);
  EXPECT_EQ(answer_score(item, "The correct answer is (B)", true), 0);
}

TEST(AnswerScore, ByTheMeasureOfTheTask) {
  EXPECT_EQ(answer_score(item_of(AnswerMetric::word, {"one-two"}), "it is \"ONE-two\"."), 1);
  const BenchmarkItem last = item_of(AnswerMetric::last_integer, {"-4"});
  EXPECT_EQ(answer_score(last, "1 2 -4"), 1);
  EXPECT_EQ(answer_score(last, "-4 5"), 0);
  BenchmarkItem line = item_of(AnswerMetric::classification, {"city"}, {"city", "state"});
  EXPECT_EQ(answer_score(line, "\ncity\nstate"), 0.5);
  line.first_line = true;
  EXPECT_EQ(answer_score(line, "\ncity\nstate"), 1);
  EXPECT_EQ(answer_score({}, "anything"), 0);
  const BenchmarkItem marked = item_of(AnswerMetric::marked_sequence, {"Xy12the sea"}, {"Xy12"});
  EXPECT_EQ(answer_score(marked, "Xy12the sea"), 1);
  EXPECT_EQ(answer_score(marked, "Xy13the sea"), 0) << "as long, but another marker";
}

}  // namespace
}  // namespace fullbore::long_context
