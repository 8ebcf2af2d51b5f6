#include "workloads/long_context/babilong.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <set>

#include "fullbore/base/error.h"
#include "fullbore/data/split_mix.h"
#include "workloads/long_context/answer_words.h"
#include "workloads/long_context/made_words.h"

namespace fullbore::long_context {
namespace {

using Words = std::vector<std::string>;

constexpr std::array<std::string_view, 5> kNames = {"qa1", "qa2", "qa3", "qa4", "qa5"};
constexpr int64_t kAnswerRoom = 20;

// The world of bAbI.
const Words kPeople = {"Mary", "John", "Sandra", "Daniel"};
const Words kGivers = {"Mary", "Bill", "Fred", "Jeff"};
const Words kPlaces = {"bathroom", "bedroom", "garden", "hallway", "kitchen", "office"};
const Words kThings = {"apple", "football", "milk"};
const Words kMoves = {"moved to", "went to", "journeyed to", "travelled to", "went back to"};
const Words kTakes = {"got", "took", "grabbed", "picked up"};
const Words kDrops = {"dropped", "put down", "left", "discarded"};
const Words kGifts = {"gave", "passed", "handed"};

/// What the task can be answered by.
Words labels_of(BabiTask task) {
  if (task != BabiTask::qa5) return kPlaces;
  Words labels = kGivers;
  labels.insert(labels.end(), kThings.begin(), kThings.end());
  return labels;
}

class Story {
 public:
  Story(BabiTask task, uint64_t key) : task_(task), draws_(key) {}

  BabiStory make() {
    switch (task_) {
      case BabiTask::qa4: relations(); break;
      case BabiTask::qa5: gifts(); break;
      default: moves(); break;
    }
    return std::move(made_);
  }

 private:
  const std::string& one_of(const Words& words) { return words[draws_.below(words.size())]; }
  const std::string& other_than(const Words& words, const std::string& known) {
    for (;;)
      if (const std::string& drawn = one_of(words); drawn != known) return drawn;
  }

  void move(const std::string& person) {
    const std::string place = other_than(kPlaces, place_of_[person]);
    place_of_[person] = place;
    made_.facts.push_back(fmt::format("{} {} the {}.", person, one_of(kMoves), place));
    for (const auto& [thing, holder] : holder_of_)
      if (holder == person) stays_[thing].push_back(place);
  }
  void take(const std::string& person, const std::string& thing) {
    holder_of_[thing] = person;
    made_.facts.push_back(fmt::format("{} {} the {} there.", person, one_of(kTakes), thing));
    std::vector<std::string>& stays = stays_[thing];
    if (stays.empty() || stays.back() != place_of_[person]) stays.push_back(place_of_[person]);
  }
  void drop(const std::string& person, const std::string& thing) {
    holder_of_.erase(thing);
    made_.facts.push_back(fmt::format("{} {} the {}.", person, one_of(kDrops), thing));
  }

  // One person alone knows where a thing is; it can be taken again only where it lies.
  void moves() {
    const bool things = task_ != BabiTask::qa1;
    const uint64_t length = task_ == BabiTask::qa1   ? 2 + draws_.below(9)
                            : task_ == BabiTask::qa2 ? 6 + draws_.below(15)
                                                     : 12 + draws_.below(20);
    const size_t needed =
        task_ == BabiTask::qa2 ? 1 : 3;  // places that the thing asked for has been in
    std::string asked = one_of(kThings);
    while (made_.facts.size() < length || (things && stays_[asked].size() < needed)) {
      const std::string& person = one_of(kPeople);
      const bool somewhere = !place_of_[person].empty();
      if (!things || !somewhere || draws_.below(2) == 0) {
        move(person);
        continue;
      }
      const std::string& thing = one_of(kThings);
      const auto holder = holder_of_.find(thing);
      if (holder == holder_of_.end()) {
        if (stays_[thing].empty() || stays_[thing].back() == place_of_[person]) take(person, thing);
      } else if (holder->second == person) {
        drop(person, thing);
      }
    }
    if (!things) {
      Words known;
      for (const auto& [person, place] : place_of_)
        if (!place.empty()) known.push_back(person);
      const std::string& person = one_of(known);
      made_.question = fmt::format("Where is {}?", person);
      made_.answer = place_of_[person];
      return;
    }
    const Words& stays = stays_[asked];
    if (task_ == BabiTask::qa2) {
      made_.question = fmt::format("Where is the {}?", asked);
      made_.answer = stays.back();
      return;
    }
    // The last time that it came to the place: bAbI's question is about the latest such change.
    made_.question = fmt::format("Where was the {} before the {}?", asked, stays.back());
    made_.answer = stays[stays.size() - 2];
  }

  // Three places in a row, told by two relations; one of the four readings is asked for.
  void relations() {
    static const std::map<std::string, std::string> opposite = {
        {"north", "south"}, {"south", "north"}, {"east", "west"}, {"west", "east"}};
    static const Words kDirections = {"north", "south", "east", "west"};
    Words places = kPlaces;
    for (size_t i = places.size(); i > 1; --i) std::swap(places[i - 1], places[draws_.below(i)]);
    const std::string direction = one_of(kDirections);
    // places[0] is <direction> of places[1], and that is <direction> of places[2].
    const auto told = [&](const std::string& a, const std::string& b) {
      return draws_.below(2) == 0
                 ? fmt::format("The {} is {} of the {}.", a, direction, b)
                 : fmt::format("The {} is {} of the {}.", b, opposite.at(direction), a);
    };
    made_.facts = {told(places[0], places[1]), told(places[1], places[2])};
    if (draws_.below(2) == 0) std::swap(made_.facts[0], made_.facts[1]);
    // Each question has one answer: the middle place has neighbours on either side.
    const bool first = draws_.below(2) == 0;
    if (draws_.below(2) == 0) {
      made_.question = fmt::format("What is {} of the {}?", direction, places[first ? 1 : 2]);
      made_.answer = places[first ? 0 : 1];
    } else {
      made_.question = fmt::format("What is the {} {} of?", places[first ? 0 : 1], direction);
      made_.answer = places[first ? 1 : 2];
    }
  }

  void gifts() {
    struct Gift {
      std::string from, thing, to;
    };
    std::vector<Gift> all;
    for (uint64_t left = 2 + draws_.below(4); left > 0; --left) {
      for (uint64_t moves = draws_.below(3); moves > 0; --moves) {
        const std::string& person = one_of(kGivers);
        made_.facts.push_back(
            fmt::format("{} {} the {}.", person, one_of(kMoves), one_of(kPlaces)));
      }
      Gift gift;
      gift.thing = one_of(kThings);
      // Who has the thing gives it.
      const auto holder = holder_of_.find(gift.thing);
      if (holder == holder_of_.end()) {
        gift.from = one_of(kGivers);
        made_.facts.push_back(
            fmt::format("{} {} the {} there.", gift.from, one_of(kTakes), gift.thing));
      } else {
        gift.from = holder->second;
      }
      gift.to = other_than(kGivers, gift.from);
      holder_of_[gift.thing] = gift.to;
      made_.facts.push_back(
          fmt::format("{} {} the {} to {}.", gift.from, one_of(kGifts), gift.thing, gift.to));
      all.push_back(gift);
    }
    // The last gift is asked about: what came before may have been alike.
    const Gift& gift = all.back();
    switch (draws_.below(5)) {
      case 0:
        made_.question = fmt::format("What did {} give to {}?", gift.from, gift.to);
        made_.answer = gift.thing;
        break;
      case 1:
        made_.question = fmt::format("Who gave the {} to {}?", gift.thing, gift.to);
        made_.answer = gift.from;
        break;
      case 2:
        made_.question = fmt::format("Who did {} give the {} to?", gift.from, gift.thing);
        made_.answer = gift.to;
        break;
      case 3:
        made_.question = fmt::format("Who received the {}?", gift.thing);
        made_.answer = gift.to;
        break;
      default:
        made_.question = fmt::format("Who gave the {}?", gift.thing);
        made_.answer = gift.from;
        break;
    }
  }

  BabiTask task_;
  SplitMix64 draws_;
  BabiStory made_;
  std::map<std::string, std::string> place_of_;   ///< of people
  std::map<std::string, std::string> holder_of_;  ///< of things
  std::map<std::string, Words> stays_;            ///< where things have been, one after the other
};

/// Of labels, those that stand in the text as words.
std::set<std::string> labels_in(std::string_view text, const Words& labels) {
  const Words words = plain_words(text);
  std::set<std::string> found;
  for (const std::string& label : labels)
    if (std::ranges::find(words, lower_case(label)) != words.end()) found.insert(lower_case(label));
  return found;
}

}  // namespace

std::vector<std::string> babi_task_names() { return {kNames.begin(), kNames.end()}; }

std::optional<BabiTask> parse_babi_task(std::string_view name) {
  const auto found = std::ranges::find(kNames, name);
  if (found == kNames.end()) return {};
  return static_cast<BabiTask>(found - kNames.begin());
}

BabiStory make_babi_story(BabiTask task, uint64_t key) { return Story(task, key).make(); }

namespace {

/// A story's facts at their places among so many sentences of the background, and the question.
class Scattered {
 public:
  Scattered(const BabilongOptions& options, BabiStory story)
      : background_(*options.background), story_(std::move(story)) {
    SplitMix64 draws(mixed_key({options.key, 2}));
    begin_ = draws.below(background_.size());
    for (size_t i = 0; i < story_.facts.size(); ++i)
      places_.push_back(static_cast<double>(draws.bits() >> 11) * 0x1p-53);
    std::ranges::sort(places_);
  }
  const BabiStory& story() const { return story_; }
  std::string prompt(int64_t sentences) const {
    const auto count = static_cast<size_t>(sentences);
    std::string text;
    size_t fact = 0;
    for (size_t i = 0; i <= count; ++i) {
      for (; fact < places_.size() &&
             static_cast<size_t>(places_[fact] * static_cast<double>(count + 1)) <= i;
           ++fact)
        text += story_.facts[fact] + " ";
      if (i < count) text += background_[(begin_ + i) % background_.size()] + " ";
    }
    return fmt::format("{}\nQuestion: {}\nAnswer: ", text, story_.question);
  }

 private:
  const std::vector<std::string>& background_;
  BabiStory story_;
  size_t begin_ = 0;
  std::vector<double> places_;
};

}  // namespace

AskedExample make_babilong_example(const BabilongOptions& options, const CountTokens& tokens) {
  if (options.background->empty()) throw UsageError("babilong: the background has no sentences");
  // Some stories are long: the first that fits is taken.
  constexpr uint64_t kStories = 100;
  int64_t least = std::numeric_limits<int64_t>::max();
  for (uint64_t number = 0; number < kStories; ++number) {
    const Scattered example(options,
                            make_babi_story(options.task, mixed_key({options.key, 1, number})));
    const auto size_of = [&](int64_t sentences) {
      return tokens(example.prompt(sentences)) + kAnswerRoom;
    };
    const int64_t sentences = most_units(0, options.length, size_of);
    if (sentences >= 0) return {example.prompt(sentences), {example.story().answer}, kAnswerRoom};
    least = std::min(least, size_of(0));
  }
  throw UsageError(
      fmt::format("{}: the facts, the question and an answer take {} tokens of this model, the "
                  "length is {}",
                  kNames[static_cast<size_t>(options.task)], least, options.length));
}

double babilong_score(BabiTask task, const AskedExample& example, std::string_view text) {
  // The first sentence; what a model makes up behind it, a next question for one, does not count.
  const std::string_view said = without_spaces_around(text);
  const std::string_view first = said.substr(0, said.find_first_of(".\n"));
  const Words labels = labels_of(task);
  const size_t question = example.prompt.rfind("Question: ");
  const std::set<std::string> asked =
      labels_in(std::string_view(example.prompt).substr(question), labels);
  std::set<std::string> named = labels_in(first, labels);
  for (const std::string& label : asked) named.erase(label);
  return named == std::set<std::string>{lower_case(example.answers.front())} ? 1 : 0;
}

}  // namespace fullbore::long_context
