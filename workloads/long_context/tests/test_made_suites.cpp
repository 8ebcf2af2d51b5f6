#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "fullbore/base/error.h"
#include "workloads/long_context/answer_words.h"
#include "workloads/long_context/babilong.h"
#include "workloads/long_context/made_words.h"
#include "workloads/long_context/needle_example.h"
#include "workloads/long_context/ruler.h"
#include "workloads/long_context/sequence_ratio.h"
#include "workloads/long_context/usable_chart.h"

namespace fullbore::long_context {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

int64_t characters(const std::string& text) { return static_cast<int64_t>(text.size()); }

AskedExample ruler(const std::string& task, int64_t length, uint64_t key = 1, bool digits = true) {
  return make_ruler_example({*parse_ruler_task(task), key, length, digits, nullptr}, characters);
}

size_t occurrences(const std::string& text, const std::string& word) {
  size_t count = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++count;
  return count;
}

TEST(Ruler, EveryTaskFillsItsLengthAndIsSolvedByItsAnswers) {
  for (const std::string& task : ruler_task_names())
    for (const int64_t length : {2048, 6000}) {
      const AskedExample made = ruler(task, length);
      const RulerTask which = *parse_ruler_task(task);
      EXPECT_LE(characters(made.prompt) + made.room, length) << task;
      EXPECT_GT(characters(made.prompt) + made.room, length - 200) << task << ": room is left";
      EXPECT_EQ(ruler(task, length).prompt, made.prompt) << task << ": the key decides";
      EXPECT_NE(ruler(task, length, 2).prompt, made.prompt) << task;
      std::string all;
      for (const std::string& answer : made.answers) {
        EXPECT_THAT(made.prompt, HasSubstr(answer)) << task;
        all += answer + ", ";
      }
      EXPECT_EQ(ruler_score(which, made, all), 1) << task;
      EXPECT_EQ(ruler_score(which, made, "I do not know"), 0) << task;
    }
}

// Of one key both would draw the same.
TEST(MadeWords, WhatAnotherHasDrawnIsAvoided) {
  WordMaker asked(5), hay(5);
  std::set<std::string> drawn;
  for (int i = 0; i < 20; ++i) drawn.insert(lower_case(i % 2 == 0 ? asked.word() : asked.name()));
  hay.avoid(asked);
  for (int i = 0; i < 40; ++i) EXPECT_TRUE(drawn.insert(lower_case(hay.name())).second);
}

TEST(Ruler, NeedlesAreThoseOfItsTable) {
  const std::map<std::string, std::pair<size_t, size_t>> needles_and_answers = {
      {"niah_single_1", {1, 1}},   {"niah_single_2", {1, 1}},   {"niah_single_3", {1, 1}},
      {"niah_multikey_1", {4, 1}}, {"niah_multivalue", {4, 4}}, {"niah_multiquery", {4, 4}}};
  for (const auto& [task, counts] : needles_and_answers) {
    const AskedExample made = ruler(task, 4096);
    EXPECT_EQ(occurrences(made.prompt, "One of the special magic "), counts.first) << task;
    EXPECT_EQ(made.answers.size(), counts.second) << task;
  }
  EXPECT_GT(occurrences(ruler("niah_multikey_2", 4096).prompt, "One of the special magic "), 30U);
  EXPECT_EQ(ruler("niah_single_3", 4096).answers[0].size(), 36U);
  // Half of the answers is half of the score; of questions about documents one is enough.
  const AskedExample made = ruler("niah_multivalue", 4096);
  EXPECT_EQ(ruler_score(RulerTask::niah_multivalue, made, made.answers[1] + made.answers[3]), 0.5);
}

// Read by its own rules, from the prompt alone.
TEST(Ruler, VariablesAndWordsAreWhatTheirTextsSay) {
  const AskedExample chain = ruler("vt", 3000);
  ASSERT_EQ(chain.answers.size(), 5U);
  std::string from = chain.prompt.substr(chain.prompt.find("assigned the value ") + 19, 5);
  size_t at = 0;
  for (const std::string& name : chain.answers) {
    const size_t place = chain.prompt.find(fmt::format("VAR {} = {}.", name, from));
    ASSERT_NE(place, std::string::npos) << name;
    EXPECT_GE(place, at) << "links stand in order";
    at = place;
    from = "VAR " + name;
  }
  for (const char* task : {"cwe", "fwe"}) {
    const AskedExample made = ruler(task, 5000);
    const std::string text = made.prompt.substr(made.prompt.find('\n'),
                                                made.prompt.rfind('\n') - made.prompt.find('\n'));
    std::map<std::string, size_t> counts;
    for (const std::string& word : plain_words(text)) ++counts[word];
    size_t least = SIZE_MAX, most = 0;
    for (const auto& [word, count] : counts) {
      if (word.find_first_not_of("0123456789") == std::string::npos) continue;
      const bool wanted = std::ranges::find(made.answers, word) != made.answers.end();
      if (wanted)
        least = std::min(least, count);
      else
        most = std::max(most, count);
    }
    EXPECT_GT(least, most) << task;
  }
}

TEST(Ruler, WithoutDigitsItKeepsToTheLettersOfAPlay) {
  const std::string alphabet = shakespeare_alphabet();
  for (const std::string& task : ruler_task_names()) {
    const AskedExample made = ruler(task, 3000, 7, false);
    EXPECT_EQ(made.prompt.find_first_not_of(alphabet), std::string::npos)
        << task << ": " << made.prompt.substr(made.prompt.find_first_not_of(alphabet), 20);
  }
  EXPECT_THROW(ruler("cwe", 100), UsageError);
}

TEST(Ruler, EssaysAreTheUsers) {
  const std::vector<std::string> essay = {"It was night.", "The sea was calm!"};
  const AskedExample made =
      make_ruler_example({RulerTask::niah_single_2, 3, 2000, true, &essay}, characters);
  EXPECT_GT(occurrences(made.prompt, "It was night. The sea was calm!"), 10U);
}

// A reader of bAbI that knows the rules answers every story; the stories are not all alike.
std::string read_story(BabiTask task, const BabiStory& story) {
  std::map<std::string, std::string> place, holder;
  std::map<std::string, std::vector<std::string>> stays;
  std::vector<std::vector<std::string>> gifts;
  std::map<std::pair<std::string, std::string>, std::string> lies;  // (direction, of) -> what
  for (const std::string& fact : story.facts) {
    const std::vector<std::string> words = split_words(fact.substr(0, fact.size() - 1));
    const auto has = [&](const char* word) {
      return std::ranges::find(words, word) != words.end();
    };
    const std::string& who = words.front();
    if (task == BabiTask::qa4) {
      static const std::map<std::string, std::string> opposite = {
          {"north", "south"}, {"south", "north"}, {"east", "west"}, {"west", "east"}};
      lies[{words[3], words.back()}] = words[1];
      lies[{opposite.at(words[3]), words[1]}] = words.back();
    } else if (has("gave") || has("passed") || has("handed")) {
      gifts.push_back({who, words[3], words.back()});
    } else if (has("moved") || has("went") || has("journeyed") || has("travelled")) {
      place[who] = words.back();
      for (const auto& [thing, of] : holder)
        if (of == who) stays[thing].push_back(words.back());
    } else if (words.back() == "there") {
      const std::string& thing = words[words.size() - 2];
      holder[thing] = who;
      if (stays[thing].empty() || stays[thing].back() != place[who])
        stays[thing].push_back(place[who]);
    } else {
      EXPECT_EQ(holder[words.back()], who) << fact << ": who has it puts it down";
      holder.erase(words.back());
    }
  }
  std::vector<std::string> asked = split_words(story.question.substr(0, story.question.size() - 1));
  if (task == BabiTask::qa1) return place[asked.back()];
  if (task == BabiTask::qa2) return stays[asked.back()].back();
  if (task == BabiTask::qa3) {
    const std::vector<std::string>& all = stays[asked[3]];
    EXPECT_EQ(all.back(), asked.back());
    return all[all.size() - 2];
  }
  if (task == BabiTask::qa4) {
    if (asked[1] == "is" && asked[2] != "the") return lies.at({asked[2], asked.back()});
    static const std::map<std::string, std::string> opposite = {
        {"north", "south"}, {"south", "north"}, {"east", "west"}, {"west", "east"}};
    return lies.at({opposite.at(asked[4]), asked[3]});
  }
  const std::vector<std::string>& last = gifts.back();
  if (asked[0] == "What") return last[1];
  if (asked[1] == "did" || asked[1] == "received") return last[2];
  return last[0];
}

TEST(Babilong, StoriesHaveTheAnswersThatTheirFactsSay) {
  for (const std::string& name : babi_task_names()) {
    const BabiTask task = *parse_babi_task(name);
    std::set<std::string> answers;
    for (uint64_t key = 0; key < 300; ++key) {
      const BabiStory story = make_babi_story(task, key);
      ASSERT_EQ(story.answer, read_story(task, story))
          << name << " " << key << ": " << story.question;
      answers.insert(story.answer);
    }
    EXPECT_GE(answers.size(), 6U) << name;
  }
}

TEST(Babilong, FactsLieInOrderAmongTheSentencesOfTheText) {
  const std::vector<std::string> text = {"Call me Ishmael.", "It was night."};
  for (const std::string& name : babi_task_names()) {
    const BabilongOptions options{*parse_babi_task(name), 5, 3000, &text};
    const AskedExample made = make_babilong_example(options, characters);
    EXPECT_LE(characters(made.prompt) + made.room, 3000);
    EXPECT_GT(characters(made.prompt) + made.room, 2950);
    EXPECT_GT(occurrences(made.prompt, "Call me Ishmael. "), 20U);
    EXPECT_EQ(
        babilong_score(options.task, made, " " + made.answers[0] + ".\nQuestion: Where is John?"),
        1);
    EXPECT_EQ(babilong_score(options.task, made, "nowhere"), 0);
  }
  const BabilongOptions brief{BabiTask::qa2, 5, 100, &text};
  EXPECT_THROW(make_babilong_example(brief, characters), UsageError);
}

TEST(Babilong, AnAnswerNamesTheRightWordAlone) {
  const AskedExample made{
      "Mary went to the office.\nQuestion: What is north of the kitchen?\nAnswer: ",
      {"office"},
      20};
  const auto score = [&](const char* text) { return babilong_score(BabiTask::qa4, made, text); };
  EXPECT_EQ(score("office"), 1);
  EXPECT_EQ(score("The Office is north of the kitchen. Or the garden"), 1);
  EXPECT_EQ(score("office or garden"), 0) << "two";
  EXPECT_EQ(score("offices"), 0) << "no word of the task";
  EXPECT_EQ(score("kitchen"), 0);
  EXPECT_EQ(score(""), 0);
}

// Values of Python 3's difflib.SequenceMatcher(None, a, b).ratio().
TEST(SequenceRatio, IsPythons) {
  EXPECT_DOUBLE_EQ(sequence_ratio("abcd", "bcde"), 0.75);
  EXPECT_DOUBLE_EQ(
      sequence_ratio("private Thread currentThread;", "private volatile Thread currentThread;"),
      0.8656716417910447);
  EXPECT_DOUBLE_EQ(sequence_ratio("", ""), 1);
  EXPECT_DOUBLE_EQ(sequence_ratio("a", ""), 0);
  EXPECT_DOUBLE_EQ(sequence_ratio("größer", "grosser"), 0.6153846153846154);
  std::string b;
  for (int i = 0; i < 12; ++i)
    b += fmt::format("the quick brown fox jumps over the lazy dog {}. ", i);
  std::string a = b;
  for (size_t at = a.find("fox"); at != std::string::npos; at = a.find("fox"))
    a.replace(at, 3, "cat");
  for (size_t at = a.find("dog"); at != std::string::npos; at = a.find("dog"))
    a.replace(at, 3, "cow");
  EXPECT_DOUBLE_EQ(sequence_ratio(a, b), 0.4275618374558304)
      << "characters that are frequent begin no block";
}

TEST(UsableChart, ShowsEveryModelItsFallAndTheThreshold) {
  const std::string svg = usable_length_svg({{"a<b", {{1024, 0.95}, {2048, 0.9}, {4096, 0.5}}},
                                             {"flat", {{1024, 0.9}, {8192, 0.85}}},
                                             {"none", {{1024, 0.2}}}},
                                            0.8);
  EXPECT_THAT(svg, StartsWith("<svg xmlns="));
  EXPECT_THAT(svg, HasSubstr("a&lt;b: 2435 tokens"));
  EXPECT_THAT(svg, HasSubstr("flat: at least 8192 tokens"));
  EXPECT_THAT(svg, HasSubstr("none: 0: below it at the shortest"));
  EXPECT_THAT(svg, HasSubstr("threshold 80 %"));
  // A fifth of the 280 below the top at 72; the fall lies at 1.25 of the two doublings that 560 have.
  EXPECT_THAT(svg, HasSubstr("y1=\"128.0\" x2=\"624.0\" y2=\"128.0\" stroke=\"#222\""));
  EXPECT_THAT(svg, HasSubstr("y1=\"128.0\" x2=\"297.3\" y2=\"352.0\""));
  EXPECT_EQ(occurrences(svg, "<polyline"), 3U);
  EXPECT_EQ(occurrences(svg, "<circle"), 6U);
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_THAT(usable_length_svg({{"one", {{512, 1}}}}, 0.8), Not(HasSubstr("nan")));
}

}  // namespace
}  // namespace fullbore::long_context
