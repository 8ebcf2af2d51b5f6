#include "workloads/long_context/made_words.h"

#include <utility>

namespace fullbore::long_context {
namespace {

constexpr std::string_view kConsonants = "bdfghjklmnprstvwz";
constexpr std::string_view kVowels = "aeiou";
constexpr std::string_view kHex = "0123456789abcdef";

std::string syllables(SplitMix64& draws, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    text += kConsonants[draws.below(kConsonants.size())];
    text += kVowels[draws.below(kVowels.size())];
  }
  return text;
}

bool is_space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

}  // namespace

std::string WordMaker::unseen(std::string text) {
  return seen_.insert(text).second ? text : std::string();
}

std::string WordMaker::word() {
  for (;;)
    if (std::string made = unseen(syllables(draws_, 3)); !made.empty()) return made;
}

std::string WordMaker::name() {
  std::string made = word();  // seen in lower case: a word and a name may not be alike either
  made[0] = static_cast<char>(made[0] - 'a' + 'A');
  return made;
}

std::string WordMaker::key_word() {
  for (;;) {
    std::string made = syllables(draws_, 3);
    made += '-' + syllables(draws_, 3);
    if (made = unseen(std::move(made)); !made.empty()) return made;
  }
}

std::string WordMaker::letters(size_t count) {
  for (;;) {
    std::string made;
    while (made.size() < count) made += static_cast<char>('A' + draws_.below(26));
    if (made = unseen(std::move(made)); !made.empty()) return made;
  }
}

std::string WordMaker::digits(size_t count) {
  for (;;) {
    std::string made(1, static_cast<char>('1' + draws_.below(9)));
    while (made.size() < count) made += static_cast<char>('0' + draws_.below(10));
    if (made = unseen(std::move(made)); !made.empty()) return made;
  }
}

std::string WordMaker::uuid() {
  std::string made;
  for (const int part : {8, 4, 4, 4, 12}) {
    if (!made.empty()) made += '-';
    for (int i = 0; i < part; ++i) made += kHex[draws_.below(kHex.size())];
  }
  return made;
}

std::vector<std::string> split_sentences(std::string_view text) {
  std::vector<std::string> sentences;
  std::string sentence;
  const auto finish = [&] {
    while (!sentence.empty() && sentence.back() == ' ') sentence.pop_back();
    if (!sentence.empty()) sentences.push_back(std::move(sentence));
    sentence.clear();
  };
  for (size_t i = 0; i < text.size(); ++i) {
    if (!is_space(text[i])) {
      sentence += text[i];
    } else if (!sentence.empty() && sentence.back() != ' ') {
      if (std::string_view(".!?").find(sentence.back()) != std::string_view::npos)
        finish();
      else
        sentence += ' ';
    }
  }
  finish();
  return sentences;
}

}  // namespace fullbore::long_context
