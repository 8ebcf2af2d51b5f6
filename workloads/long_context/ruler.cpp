#include "workloads/long_context/ruler.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "fullbore/base/error.h"
#include "workloads/long_context/answer_words.h"
#include "workloads/long_context/made_words.h"

namespace fullbore::long_context {
namespace {

constexpr std::array<std::string_view, 13> kNames = {"niah_single_1",
                                                     "niah_single_2",
                                                     "niah_single_3",
                                                     "niah_multikey_1",
                                                     "niah_multikey_2",
                                                     "niah_multikey_3",
                                                     "niah_multivalue",
                                                     "niah_multiquery",
                                                     "vt",
                                                     "cwe",
                                                     "fwe",
                                                     "qa_1",
                                                     "qa_2"};
constexpr std::array<std::string_view, 5> kNoise = {"The grass is green.", "The sky is blue.",
                                                    "The sun is yellow.", "Here we go.",
                                                    "There and back again."};

struct Room {
  int64_t tokens;  ///< of an answer, as RULER has it
  int64_t least;   ///< units of haystack
};
Room room_of(RulerTask task) {
  switch (task) {
    case RulerTask::vt: return {30, 0};
    case RulerTask::cwe: return {120, 10};
    case RulerTask::fwe: return {50, 60};  // fewer words, and the frequent ones would tie
    case RulerTask::qa_1:
    case RulerTask::qa_2: return {32, 1};
    default: return {128, 0};
  }
}

/// One example with so much haystack. What is asked for is drawn before the haystack and by draws of its own, so that
/// it is the same for any amount.
class Maker {
 public:
  Maker(const RulerOptions& options, int64_t units)
      : options_(options),
        units_(static_cast<size_t>(units)),
        asked_(mixed_key({options.key, 1})),
        hay_(mixed_key({options.key, 2})) {}

  AskedExample make() {
    switch (options_.task) {
      case RulerTask::vt: track_variables(); break;
      case RulerTask::cwe: common_words(); break;
      case RulerTask::fwe: frequent_words(); break;
      case RulerTask::qa_1:
      case RulerTask::qa_2: ask_documents(); break;
      default: hide_needles(); break;
    }
    made_.room = room_of(options_.task).tokens;
    return std::move(made_);
  }

 private:
  bool is(RulerTask task) const { return options_.task == task; }
  bool uuids() const { return is(RulerTask::niah_single_3) || is(RulerTask::niah_multikey_3); }
  bool hay_of_needles() const {
    return is(RulerTask::niah_multikey_2) || is(RulerTask::niah_multikey_3);
  }
  std::string count(int number, const char* word) const {
    return options_.digits ? fmt::format("{}", number) : word;
  }

  std::string key(WordMaker& draws) const {
    if (!is(RulerTask::niah_multikey_3)) return draws.key_word();
    return options_.digits ? draws.uuid() : draws.letters(16);
  }
  std::string value(WordMaker& draws) const {
    if (!options_.digits) return draws.letters(uuids() ? 16 : 7);
    return uuids() ? draws.uuid() : draws.digits(7);
  }
  std::string values_name(bool several) const {
    const std::string one = !options_.digits ? "word" : uuids() ? "uuid" : "number";
    return several ? one + "s" : one;
  }
  std::string needle(const std::string& name, const std::string& what) const {
    return fmt::format("One of the special magic {} for {} is: {}.", values_name(true), name, what);
  }

  std::string made_sentence() {
    std::string text = hay_.name();
    for (uint64_t words = 4 + hay_.below(8); words > 0; --words)
      text += ' ' + filler_[hay_.below(filler_.size())];
    return text + '.';
  }
  /// `units_` sentences of the kind that the task has.
  std::vector<std::string> haystack(bool noise) {
    std::vector<std::string> sentences;
    const std::vector<std::string>* const essay = options_.essay;
    const bool given = essay != nullptr && !essay->empty();
    if (!noise && !given)
      for (int i = 0; i < 500; ++i) filler_.push_back(hay_.word());
    const size_t begin = given ? hay_.below(essay->size()) : 0;
    for (size_t i = 0; i < units_; ++i) {
      if (hay_of_needles()) {
        const std::string name = key(hay_);
        sentences.push_back(needle(name, value(hay_)));
      } else if (noise) {
        sentences.emplace_back(kNoise[i % kNoise.size()]);
      } else {
        sentences.push_back(given ? (*essay)[(begin + i) % essay->size()] : made_sentence());
      }
    }
    return sentences;
  }
  /// The sentences with the others among them, each at its share of the way, in ascending order of share.
  static std::string joined(const std::vector<std::string>& hay,
                            std::vector<std::pair<double, std::string>> others) {
    std::ranges::stable_sort(others, {}, &std::pair<double, std::string>::first);
    std::string text;
    size_t next = 0;
    const auto add = [&](const std::string& sentence) {
      text += (text.empty() ? "" : " ") + sentence;
    };
    for (size_t i = 0; i <= hay.size(); ++i) {
      for (; next < others.size(); ++next) {
        const double place = std::floor(others[next].first * static_cast<double>(hay.size() + 1));
        if (static_cast<size_t>(place) > i) break;
        add(others[next].second);
      }
      if (i < hay.size()) add(hay[i]);
    }
    return text;
  }

  void hide_needles() {
    const size_t keys = is(RulerTask::niah_multikey_1) || is(RulerTask::niah_multiquery) ? 4 : 1;
    const size_t values = is(RulerTask::niah_multivalue) ? 4 : 1;
    std::vector<std::string> names;
    std::vector<std::pair<double, std::string>> needles;
    for (size_t i = 0; i < keys; ++i) {
      names.push_back(key(asked_));
      const bool wanted = i == 0 || is(RulerTask::niah_multiquery);
      for (size_t j = 0; j < values; ++j) {
        const std::string what = value(asked_);
        if (wanted) made_.answers.push_back(what);
        needles.emplace_back(asked_.share(), needle(names.back(), what));
      }
    }
    if (!is(RulerTask::niah_multiquery)) names.resize(1);
    std::string query = names.front();
    if (names.size() > 1)
      query =
          fmt::format("{}, and {}", fmt::join(names.begin(), names.end() - 1, ", "), names.back());
    const bool several = made_.answers.size() > 1;
    const std::string what = values_name(several);
    made_.prompt = fmt::format(
        "Some special magic {} are hidden within the following text. Make sure to memorize it. I "
        "will quiz you about the {} afterwards.\n{}\nWhat {} the special magic {} for {} mentioned "
        "in the provided text? The special magic {} for {} mentioned in the provided text {}",
        values_name(true), values_name(true),
        joined(haystack(is(RulerTask::niah_single_1)), std::move(needles)),
        several ? "are all" : "is", what, query, what, query, several ? "are" : "is");
  }

  void track_variables() {
    constexpr int kHops = 4;
    const std::string value = options_.digits ? asked_.digits(5) : asked_.letters(8);
    const char* const is_set_to = options_.digits ? "=" : "is";
    std::vector<double> places;
    for (int i = 0; i <= kHops; ++i) places.push_back(asked_.share());
    std::ranges::sort(places);
    std::vector<std::pair<double, std::string>> links;
    std::string from = value;
    for (const double place : places) {
      const std::string name = asked_.letters(5);
      links.emplace_back(place, fmt::format("VAR {} {} {}.", name, is_set_to, from));
      from = "VAR " + name;
      made_.answers.push_back(name);
    }
    made_.prompt = fmt::format(
        "Memorize and track the chain of variable assignment hidden in the following text.\n{}\n"
        "Question: Find all variables that are assigned the value {} in the text above. Answer: "
        "According to the chain of variable assignment in the text above, {} variables are "
        "assigned "
        "the value {}, they are:",
        joined(haystack(true), std::move(links)), value, count(kHops + 1, "five"), value);
  }

  void shuffle(std::vector<std::string>& words) {
    for (size_t i = words.size(); i > 1; --i) std::swap(words[i - 1], words[hay_.below(i)]);
  }

  // Common words stand ten times as often as others; in short texts six times.
  void common_words() {
    const bool brief = options_.length < 4096;
    std::vector<std::string> words;
    for (int i = 0; i < 10; ++i) made_.answers.push_back(asked_.word());
    for (const std::string& word : made_.answers) words.insert(words.end(), brief ? 6 : 30, word);
    hay_.avoid(asked_);
    for (size_t i = 0; i < units_; ++i) words.insert(words.end(), brief ? 1 : 3, hay_.word());
    shuffle(words);
    std::string list;
    for (size_t i = 0; i < words.size(); ++i)
      list += options_.digits ? fmt::format("{}{}. {}", i > 0 ? " " : "", i + 1, words[i])
                              : (i > 0 ? " " : "") + words[i];
    made_.prompt = fmt::format(
        "Below is a list of words. In these words, some appear more often than others. Memorize "
        "the ones that appear most often.\n{}\nQuestion: What are the {} most common words in the "
        "above list? Answer: The top {} words that appear most often in the list are:",
        list, count(10, "ten"), count(10, "ten"));
  }

  // Word k of N stands N / (zeta(2) k^2) times; the commonest is noise.
  void frequent_words() {
    constexpr double kZeta2 = 1.6449340668482264;
    std::vector<std::string> words;
    for (size_t rank = 1;; ++rank) {
      const auto square = static_cast<double>(rank) * static_cast<double>(rank);
      const auto times =
          static_cast<size_t>(std::llround(static_cast<double>(units_) / (kZeta2 * square)));
      if (times == 0) break;
      const std::string word = rank == 1 ? "..." : asked_.word();
      if (rank >= 2 && rank <= 4) made_.answers.push_back(word);
      words.insert(words.end(), times, word);
    }
    shuffle(words);
    made_.prompt = fmt::format(
        "Read the following coded text and track the frequency of each coded word. Find the three "
        "most frequently appeared coded words.\n{}\nQuestion: Do not provide any explanation. "
        "Please "
        "ignore the dots. What are the three most frequently appeared words in the above coded "
        "text? "
        "Answer: According to the coded text above, the three most frequently appeared words are:",
        fmt::join(words, " "));
  }

  // Of a person: the town of birth and the employer; of a company: its seat.
  void ask_documents() {
    const bool two = is(RulerTask::qa_2);
    const auto person = [&](WordMaker& draws, const std::string& name, const std::string& town,
                            const std::string& company) {
      return fmt::format(
          "{} was born in the town of {}. {} works at the company {}. In spare time "
          "{} likes to {}.",
          name, town, name, company, name, draws.word());
    };
    const auto seat = [&](WordMaker& draws, const std::string& company, const std::string& town) {
      return fmt::format("The company {} makes {}. It has its seat in the town of {}.", company,
                         draws.word(), town);
    };
    const std::string name = asked_.name() + " " + asked_.name();
    const std::string birth = asked_.name(), company = asked_.name(), town = asked_.name();
    std::vector<std::pair<double, std::string>> wanted;
    wanted.emplace_back(asked_.share(), person(asked_, name, birth, company));
    if (two) wanted.emplace_back(asked_.share(), seat(asked_, company, town));
    hay_.avoid(asked_);  // another person or company of the same name would be another answer
    std::vector<std::string> others;
    for (size_t i = 0; i < units_; ++i) {
      const std::string other = hay_.name();
      if (two && i % 2 == 1)
        others.push_back(seat(hay_, other, hay_.name()));
      else {
        const std::string last = hay_.name(), born = hay_.name();
        others.push_back(person(hay_, other + " " + last, born, hay_.name()));
      }
    }
    std::ranges::stable_sort(wanted, {}, &std::pair<double, std::string>::first);
    std::vector<std::string> documents = others;
    size_t before = 0;
    for (const auto& [share, text] : wanted) {
      const auto at =
          static_cast<size_t>(share * static_cast<double>(others.size() + 1)) + before++;
      documents.insert(documents.begin() + static_cast<std::ptrdiff_t>(at), text);
    }
    std::string list;
    for (size_t i = 0; i < documents.size(); ++i)
      list += options_.digits ? fmt::format("Document {}:\n{}\n\n", i + 1, documents[i])
                              : fmt::format("Document:\n{}\n\n", documents[i]);
    made_.answers = {two ? town : birth};
    made_.prompt = fmt::format(
        "Answer the question based on the given documents. Only give me the answer and do not "
        "output any other words.\n\nThe following are given documents.\n\n{}Answer the question "
        "based on the given documents. Only give me the answer and do not output any other "
        "words.\n\nQuestion: {}\nAnswer:",
        list,
        two ? fmt::format("In which town is the seat of the company at which {} works?", name)
            : fmt::format("In which town was {} born?", name));
  }

  const RulerOptions& options_;
  size_t units_;
  WordMaker asked_;
  WordMaker hay_;
  std::vector<std::string> filler_;
  AskedExample made_;
};

}  // namespace

std::vector<std::string> ruler_task_names() { return {kNames.begin(), kNames.end()}; }

std::optional<RulerTask> parse_ruler_task(std::string_view name) {
  const auto found = std::ranges::find(kNames, name);
  if (found == kNames.end()) return {};
  return static_cast<RulerTask>(found - kNames.begin());
}

AskedExample make_ruler_example(const RulerOptions& options, const CountTokens& tokens) {
  const Room room = room_of(options.task);
  const auto size_of = [&](int64_t units) {
    return tokens(Maker(options, units).make().prompt) + room.tokens;
  };
  const int64_t units = most_units(room.least, options.length, size_of);
  if (units < 0)
    throw UsageError(fmt::format(
        "{}: the shortest example and its answer take {} tokens of this model, the length is {}",
        kNames[static_cast<size_t>(options.task)], size_of(room.least), options.length));
  return Maker(options, units).make();
}

double ruler_score(RulerTask task, const AskedExample& example, std::string_view text) {
  const std::string said = lower_case(text);
  double found = 0;
  for (const std::string& answer : example.answers)
    found += said.find(lower_case(answer)) != std::string::npos ? 1 : 0;
  const bool any = task == RulerTask::qa_1 || task == RulerTask::qa_2;
  if (any) return found > 0 ? 1 : 0;
  return found / static_cast<double>(example.answers.size());
}

}  // namespace fullbore::long_context
