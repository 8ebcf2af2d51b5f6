#include "workloads/latentwire/answer_metrics.h"

#include <algorithm>
#include <map>
#include <vector>

#include "fullbore/base/check.h"

namespace fullbore::latentwire {
namespace {

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool is_punctuation(char c) {
  return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') ||
         (c >= '{' && c <= '~');
}
bool is_article(const std::string& word) { return word == "a" || word == "an" || word == "the"; }

std::vector<std::string> words_of(std::string_view answer) {
  std::vector<std::string> words;
  std::string word;
  const auto end_word = [&] {
    if (!word.empty() && !is_article(word)) words.push_back(word);
    word.clear();
  };
  for (const char c : answer) {
    if (is_space(c))
      end_word();
    else if (!is_punctuation(c))
      word += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  end_word();
  return words;
}

}  // namespace

std::string normalised_answer(std::string_view answer) {
  std::string text;
  for (const std::string& word : words_of(answer)) text += (text.empty() ? "" : " ") + word;
  return text;
}

AnswerScore answer_score(std::string_view predicted, std::string_view reference) {
  const std::vector<std::string> a = words_of(predicted), b = words_of(reference);
  AnswerScore score;
  score.exact_match = a == b ? 1 : 0;
  if (a.empty() || b.empty()) {
    score.f1 = score.exact_match;
    return score;
  }
  std::map<std::string, int64_t> left;
  for (const std::string& word : b) ++left[word];
  double shared = 0;
  for (const std::string& word : a)
    if (left[word]-- > 0) ++shared;
  // 2 p r / (p + r) with p = shared / |a|, r = shared / |b|.
  score.f1 = 2 * shared / static_cast<double>(a.size() + b.size());
  return score;
}

AnswerScore answer_score(std::string_view predicted, std::span<const std::string> references) {
  FB_CHECK(!references.empty(), "no reference");
  AnswerScore best;
  for (const std::string& reference : references) {
    const AnswerScore score = answer_score(predicted, reference);
    best.exact_match = std::max(best.exact_match, score.exact_match);
    best.f1 = std::max(best.f1, score.f1);
  }
  return best;
}

}  // namespace fullbore::latentwire
