#include "fullbore/text/sample_quality.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace fullbore {
namespace {

/// All stretches of a text, as the suffix automaton that knows them: a state for each set of places where stretches end
/// alike. Source: Blumer et al. 1985, "The smallest automaton recognizing the subwords of a text".
class Stretches {
 public:
  explicit Stretches(std::span<const int32_t> tokens) {
    states_.reserve(2 * tokens.size() + 1);
    states_.emplace_back();
    for (const int32_t token : tokens) append(token);
  }

  /// Of the longest stretch that occurs twice: of all states that end at two places or more.
  int64_t longest_repetition() const {
    // A state's places are its own, if it is not a copy, and those of the states that link to it: the longest first.
    std::vector<size_t> order(states_.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::sort(order, std::greater<>(), [&](size_t state) { return states_[state].length; });
    std::vector<int64_t> places(states_.size(), 0);
    int64_t longest = 0;
    for (const size_t state : order) {
      if (state == 0) continue;
      places[state] += states_[state].is_copy ? 0 : 1;
      if (places[state] > 1) longest = std::max(longest, states_[state].length);
      places[static_cast<size_t>(states_[state].link)] += places[state];
    }
    return longest;
  }

  /// Of `text`, the longest stretch that is known.
  int64_t longest_known(std::span<const int32_t> text) const {
    int64_t longest = 0;
    int64_t length = 0;
    size_t state = 0;
    for (const int32_t token : text) {
      auto next = states_[state].next.find(token);
      while (next == states_[state].next.end() && state != 0) {
        state = static_cast<size_t>(states_[state].link);
        length = states_[state].length;
        next = states_[state].next.find(token);
      }
      if (next == states_[state].next.end()) continue;
      state = next->second;
      longest = std::max(longest, ++length);
    }
    return longest;
  }

 private:
  struct State {
    int64_t length = 0;
    int64_t link = -1;
    bool is_copy = false;
    std::map<int32_t, size_t> next = {};
  };

  void append(int32_t token) {
    const size_t added = states_.size();
    states_.push_back({.length = states_[last_].length + 1});
    auto from = static_cast<int64_t>(last_);
    for (; from >= 0 && !at(from).next.contains(token); from = at(from).link)
      at(from).next[token] = added;
    last_ = added;
    if (from < 0) {
      states_[added].link = 0;
      return;
    }
    const size_t reached = at(from).next[token];
    if (states_[reached].length == at(from).length + 1) {
      states_[added].link = static_cast<int64_t>(reached);
      return;
    }
    const size_t copy = states_.size();
    State cut = states_[reached];
    cut.length = at(from).length + 1;
    cut.is_copy = true;
    states_.push_back(std::move(cut));
    for (; from >= 0; from = at(from).link) {
      const auto next = at(from).next.find(token);
      if (next == at(from).next.end() || next->second != reached) break;
      next->second = copy;
    }
    states_[reached].link = states_[added].link = static_cast<int64_t>(copy);
  }
  State& at(int64_t state) { return states_[static_cast<size_t>(state)]; }

  std::vector<State> states_;
  size_t last_ = 0;
};

int64_t invalid_characters(std::string_view text) {
  constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD
  int64_t count = 0;
  for (size_t at = text.find(kReplacement); at != text.npos;
       at = text.find(kReplacement, at + kReplacement.size()))
    ++count;
  for (const char c : text)
    count += (c >= 0 && c < ' ' && c != '\n' && c != '\t' && c != '\r') || c == 0x7f ? 1 : 0;
  return count;
}

}  // namespace

SampleQuality sample_quality(std::span<const int32_t> tokens, std::string_view text) {
  constexpr size_t kGram = 4;
  SampleQuality quality;
  if (tokens.size() >= kGram) {
    std::set<std::array<int32_t, kGram>> grams;
    const size_t all = tokens.size() - kGram + 1;
    for (size_t i = 0; i < all; ++i)
      grams.insert({tokens[i], tokens[i + 1], tokens[i + 2], tokens[i + 3]});
    quality.distinct_four_grams = static_cast<double>(grams.size()) / static_cast<double>(all);
  }
  quality.longest_repetition = Stretches(tokens).longest_repetition();
  quality.invalid_characters = invalid_characters(text);
  return quality;
}

int64_t longest_copy(std::span<const int32_t> tokens, std::span<const int32_t> reference) {
  return Stretches(tokens).longest_known(reference);
}

}  // namespace fullbore
