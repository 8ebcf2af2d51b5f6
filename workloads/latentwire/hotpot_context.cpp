#include <algorithm>
#include <set>
#include <utility>

#include "workloads/latentwire/question_reader.h"

namespace fullbore::latentwire {
namespace {

constexpr size_t kMostSentences = 6;
constexpr size_t kFirstSentences = 4;
constexpr size_t kFirstParagraphs = 3;
constexpr size_t kMostCharacters = 2000;

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// Words with one space between them.
void append_words(std::string& text, const std::string& sentence) {
  for (size_t at = 0; at < sentence.size();) {
    if (is_space(sentence[at])) {
      ++at;
      continue;
    }
    if (!text.empty()) text += ' ';
    for (; at < sentence.size() && !is_space(sentence[at]); ++at) text += sentence[at];
  }
}

// The first characters of UTF-8, none cut in two.
void keep_characters(std::string& text, size_t most) {
  size_t characters = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    const bool begins = (static_cast<unsigned char>(text[at]) & 0xC0U) != 0x80U;
    if (begins && ++characters > most) {
      text.resize(at);
      return;
    }
  }
}

}  // namespace

std::string hotpot_context(const std::vector<HotpotParagraph>& paragraphs,
                           const std::vector<HotpotFact>& facts) {
  std::string text;
  std::set<std::pair<size_t, size_t>> taken;
  const auto take = [&](size_t paragraph, size_t sentence) {
    if (taken.size() < kMostSentences && taken.emplace(paragraph, sentence).second)
      append_words(text, paragraphs[paragraph].sentences[sentence]);
  };
  for (const HotpotFact& fact : facts) {
    const auto found = std::ranges::find(paragraphs, fact.title, &HotpotParagraph::title);
    if (found == paragraphs.end()) continue;
    const auto paragraph = static_cast<size_t>(found - paragraphs.begin());
    const auto sentences = static_cast<int64_t>(found->sentences.size());
    if (fact.sentence < 0 || fact.sentence >= sentences) continue;
    const int64_t last = std::min(fact.sentence + 1, sentences - 1);
    for (int64_t i = std::max<int64_t>(fact.sentence - 1, 0); i <= last; ++i)
      take(paragraph, static_cast<size_t>(i));
  }
  for (size_t paragraph = 0; paragraph < std::min(kFirstParagraphs, paragraphs.size()); ++paragraph)
    for (size_t i = 0; i < std::min(kFirstSentences, paragraphs[paragraph].sentences.size()); ++i)
      take(paragraph, i);
  keep_characters(text, kMostCharacters);
  return text;
}

}  // namespace fullbore::latentwire
