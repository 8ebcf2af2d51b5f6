#include "workloads/long_context/needle_example.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "fullbore/base/error.h"
#include "fullbore/data/split_mix.h"

namespace fullbore::long_context {
namespace {

constexpr std::array<std::string_view, 6> kTaskNames = {
    "single", "multi-needle", "multi-key", "multi-value", "multi-query", "variable-tracking"};
constexpr std::array<std::string_view, 16> kWords = {"the", "of",  "and", "to",   "in", "that",
                                                     "was", "his", "it",  "with", "as", "for",
                                                     "had", "you", "not", "be"};
constexpr size_t kNameLetters = 4;
constexpr size_t kValueLetters = 5;
constexpr uint64_t kChoiceStream = 1;  // what is drawn beside the sequence that texts are drawn by

/// "\nNAME: VALUE.\n" at a depth.
struct Needle {
  std::string name;
  std::string value;
  double depth = 0;
  bool asked = false;
  std::string text() const { return "\n" + name + ": " + value + ".\n"; }
};

class Maker {
 public:
  Maker(uint64_t key, const NeedleOptions& options)
      : options_(options), draws_(key), choices_(mixed_key({key, kChoiceStream})) {}

  NeedleExample make() {
    draw_needles();
    ask();
    if (options_.hide_answers)
      std::erase_if(needles_, [](const Needle& each) { return each.asked; });
    insert();
    return std::move(example_);
  }

 private:
  std::string letters(size_t count) {
    std::string text;
    while (text.size() < count) text += static_cast<char>('A' + draws_.below(26));
    return text;
  }
  /// Drawn anew where it is taken already, so that a question has one answer.
  std::string name() {
    for (;;) {
      std::string drawn = letters(kNameLetters);
      if (std::ranges::find(names_, drawn) == names_.end()) return names_.emplace_back(drawn);
    }
  }
  static double even(int64_t index, int64_t count) {
    return (static_cast<double>(index) + 0.5) / static_cast<double>(count);
  }

  void draw_needles() {
    if (options_.task == NeedleTask::variable_tracking) return draw_chains();
    const int64_t count = options_.needles;
    std::string shared;
    for (int64_t i = 0; i < count; ++i) {
      Needle needle;
      const bool first_of_name = options_.task != NeedleTask::multi_value || i == 0;
      needle.name = first_of_name ? name() : shared;
      shared = needle.name;
      needle.value = letters(kValueLetters);
      if (!has_depth(options_.task))
        needle.depth = even(i, count);
      else
        needle.depth = i == 0 ? options_.depth : even(i - 1, count - 1);
      needles_.push_back(std::move(needle));
    }
  }

  void draw_chains() {
    const int64_t length = options_.hops + 1;
    std::vector<std::vector<Needle>> chains;
    for (int64_t chain = 0; chain < options_.needles; ++chain) {
      std::vector<Needle>& links = chains.emplace_back();
      std::string value = letters(kValueLetters);
      for (int64_t link = 0; link < length; ++link) {
        links.push_back({name(), value, 0, chain == 0});
        value = links.back().name;
      }
    }
    // The chains lie between one another, each in its order: place i is of chain order[i] / length.
    const int64_t places = options_.needles * length;
    std::vector<size_t> taken(chains.size(), 0);
    int64_t place = 0;
    for (const int64_t drawn : choices_.choose(0, places, places)) {
      const auto chain = static_cast<size_t>(drawn / length);
      Needle& link = chains[chain][taken[chain]++];
      link.depth = even(place++, places);
      needles_.push_back(link);
    }
    first_value_ = chains.front().front().value;
  }

  void ask() {
    switch (options_.task) {
      case NeedleTask::single:
      case NeedleTask::multi_key: return ask_by_name({0});
      case NeedleTask::multi_needle:
        for (const size_t index : asked_needles()) ask_by_name({index});
        return;
      case NeedleTask::multi_query: return ask_by_name(asked_needles());
      case NeedleTask::multi_value: {
        std::vector<size_t> all(needles_.size());
        std::iota(all.begin(), all.end(), size_t{0});
        ask_by_name(all);
        example_.questions.front().text = "\n" + needles_.front().name + ": ";
        return;
      }
      case NeedleTask::variable_tracking: return ask_for_chain();
    }
  }

  std::vector<size_t> asked_needles() {
    const auto count = static_cast<int64_t>(needles_.size());
    const int64_t asked = options_.asked == 0 ? count : options_.asked;
    std::vector<size_t> indices;
    for (const int64_t index : choices_.choose(0, count, asked))
      indices.push_back(static_cast<size_t>(index));
    return indices;
  }

  /// "NAME, NAME: " for the values of these needles.
  void ask_by_name(const std::vector<size_t>& indices) {
    NeedleQuestion question;
    std::vector<std::string> names;
    for (const size_t index : indices) {
      Needle& needle = needles_[index];
      needle.asked = true;
      names.push_back(needle.name);
      question.answers.push_back({needle.value, needle.depth});
    }
    question.text = fmt::format("\n{}: ", fmt::join(names, ", "));
    add(std::move(question));
  }

  void ask_for_chain() {
    NeedleQuestion question;
    question.text = "\n" + first_value_ + "? ";
    for (const Needle& needle : needles_)
      if (needle.asked) question.answers.push_back({needle.name, needle.depth});
    add(std::move(question));
  }

  /// An answer of several has ", " between them.
  void add(NeedleQuestion question) {
    for (const NeedleAnswer& answer : question.answers)
      question.room += static_cast<int64_t>(answer.text.size()) + 2;
    question.room -= 2;
    example_.questions.push_back(std::move(question));
  }

  std::string filler(size_t characters) {
    std::string text;
    if (!options_.haystack.empty()) {
      const std::string_view hay = options_.haystack;
      size_t at = draws_.below(hay.size());
      while (at > 0 && hay[at - 1] != ' ' && hay[at - 1] != '\n') --at;
      while (text.size() < characters) {  // a haystack that is too short is read again
        text += hay.substr(at, characters - text.size());
        at = 0;
      }
      return text;
    }
    while (text.size() < characters) {
      text += kWords[draws_.below(kWords.size())];
      text += ' ';
    }
    text.resize(characters);
    return text;
  }

  void insert() {
    size_t fixed = example_.questions.front().text.size();
    for (const Needle& needle : needles_) fixed += needle.text().size();
    const auto characters = static_cast<size_t>(options_.characters);
    if (characters < fixed)
      throw UsageError(
          fmt::format("{}: {} needles and a question take {} characters, the text has {}",
                      needle_task_name(options_.task), needles_.size(), fixed, characters));
    const std::string hay = filler(characters - fixed);
    std::ranges::stable_sort(needles_, {}, &Needle::depth);
    size_t taken = 0;
    for (const Needle& needle : needles_) {
      auto at = static_cast<size_t>(std::floor(needle.depth * static_cast<double>(hay.size())));
      while (at > 0 && hay[at - 1] != ' ') --at;
      at = std::max(at, taken);
      example_.text += hay.substr(taken, at - taken);
      example_.text += needle.text();
      taken = at;
    }
    example_.text += hay.substr(taken);
  }

  NeedleOptions options_;
  SplitMix64 draws_;
  SplitMix64 choices_;
  std::vector<std::string> names_;
  std::vector<Needle> needles_;
  std::string first_value_;
  NeedleExample example_;
};

void check(const NeedleOptions& options) {
  const std::string_view task = needle_task_name(options.task);
  const auto refuse = [&](const std::string& reason) {
    throw UsageError(fmt::format("{}: {}", task, reason));
  };
  if (!(options.depth >= 0 && options.depth <= 1))
    refuse(fmt::format("a depth of {}; 0 to 1 was expected", options.depth));
  if (options.needles < 1) refuse(fmt::format("{} needles", options.needles));
  if (options.task == NeedleTask::single && options.needles != 1)
    refuse(fmt::format("{} needles; multi-needle and multi-key have several", options.needles));
  const bool chooses =
      options.task == NeedleTask::multi_needle || options.task == NeedleTask::multi_query;
  if (options.asked != 0 && !chooses) refuse("what is asked for cannot be chosen");
  if (options.asked < 0 || options.asked > options.needles)
    refuse(fmt::format("{} of {} needles asked for", options.asked, options.needles));
  if (options.hops < 0) refuse(fmt::format("{} hops", options.hops));
}

bool is_letter(char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); }

bool holds_word(std::string_view text, std::string_view word) {
  for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const size_t end = at + word.size();
    if ((at == 0 || !is_letter(text[at - 1])) && (end == text.size() || !is_letter(text[end])))
      return true;
  }
  return false;
}

}  // namespace

std::string_view needle_task_name(NeedleTask task) { return kTaskNames[static_cast<size_t>(task)]; }

std::optional<NeedleTask> parse_needle_task(std::string_view name) {
  const auto found = std::ranges::find(kTaskNames, name);
  if (found == kTaskNames.end()) return {};
  return static_cast<NeedleTask>(found - kTaskNames.begin());
}

std::vector<std::string> needle_task_names() { return {kTaskNames.begin(), kTaskNames.end()}; }

bool has_depth(NeedleTask task) {
  return task == NeedleTask::single || task == NeedleTask::multi_key;
}

NeedleExample make_needle_example(uint64_t key, const NeedleOptions& options) {
  check(options);
  return Maker(key, options).make();
}

std::vector<bool> found_answers(const NeedleQuestion& question, std::string_view text) {
  if (question.answers.size() == 1) return {text.starts_with(question.answers.front().text)};
  std::vector<bool> found;
  for (const NeedleAnswer& answer : question.answers)
    found.push_back(holds_word(text, answer.text));
  return found;
}

std::string needle_alphabet() {
  std::string characters = "\n ,.:?ABCDEFGHIJKLMNOPQRSTUVWXYZ";
  for (const std::string_view word : kWords) characters += word;
  std::ranges::sort(characters);
  characters.erase(std::unique(characters.begin(), characters.end()), characters.end());
  return characters;
}

std::string shakespeare_alphabet() {
  return "\n !$&',-.3:;?ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
}

}  // namespace fullbore::long_context
