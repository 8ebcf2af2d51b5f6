#include "workloads/long_context/answer_scores.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "workloads/long_context/answer_words.h"

namespace fullbore::long_context {
namespace {

using Words = std::vector<std::string>;

double harmonic_mean(double precision, double recall) {
  return precision + recall > 0 ? 2 * precision * recall / (precision + recall) : 0;
}

double f_measure(size_t shared, size_t predicted, size_t wanted) {
  if (shared == 0) return 0;
  return harmonic_mean(static_cast<double>(shared) / static_cast<double>(predicted),
                       static_cast<double>(shared) / static_cast<double>(wanted));
}

template <class Score>
double best_of(std::span<const std::string> references, const Score& score) {
  double best = 0;
  for (const std::string& reference : references) best = std::max(best, score(reference));
  return best;
}

std::map<std::string, size_t> counts(const Words& words) {
  std::map<std::string, size_t> result;
  for (const std::string& word : words) ++result[word];
  return result;
}

double multiset_f1(const Words& predicted, const Words& wanted) {
  std::map<std::string, size_t> left = counts(wanted);
  size_t shared = 0;
  for (const std::string& word : predicted)
    if (const auto found = left.find(word); found != left.end() && found->second > 0) {
      --found->second;
      ++shared;
    }
  return f_measure(shared, predicted.size(), wanted.size());
}

/// Length of the longest common subsequence, in memory of one row.
size_t common_length(const Words& a, const Words& b) {
  std::vector<size_t> row(b.size() + 1, 0);
  for (const std::string& word : a) {
    size_t diagonal = 0;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t above = row[j + 1];
      row[j + 1] = word == b[j] ? diagonal + 1 : std::max(above, row[j]);
      diagonal = above;
    }
  }
  return row.back();
}

/// Adds to `places` where the words of a longest common subsequence stand in `wanted`: the one whose
/// words stand furthest back.
void add_common_places(const Words& wanted, const Words& predicted, std::set<size_t>& places) {
  const size_t columns = predicted.size() + 1;
  std::vector<uint32_t> table((wanted.size() + 1) * columns, 0);
  for (size_t i = 1; i <= wanted.size(); ++i)
    for (size_t j = 1; j < columns; ++j)
      table[i * columns + j] =
          wanted[i - 1] == predicted[j - 1]
              ? table[(i - 1) * columns + j - 1] + 1
              : std::max(table[(i - 1) * columns + j], table[i * columns + j - 1]);
  size_t i = wanted.size();
  size_t j = predicted.size();
  while (i > 0 && j > 0) {
    if (wanted[i - 1] == predicted[j - 1]) {
      places.insert(i - 1);
      --i;
      --j;
    } else if (table[i * columns + j - 1] > table[(i - 1) * columns + j]) {
      --j;
    } else {
      --i;
    }
  }
}

std::vector<Words> words_of_lines(std::string_view text) {
  std::vector<Words> lines;
  for (const std::string& line : split_lines(text)) lines.push_back(plain_words(line));
  return lines;
}

size_t word_count(const std::vector<Words>& lines) {
  size_t count = 0;
  for (const Words& line : lines) count += line.size();
  return count;
}

double summary_f(const std::vector<Words>& predicted, const std::vector<Words>& wanted) {
  std::map<std::string, size_t> left_predicted;
  std::map<std::string, size_t> left_wanted;
  for (const Words& line : predicted)
    for (const std::string& word : line) ++left_predicted[word];
  for (const Words& line : wanted)
    for (const std::string& word : line) ++left_wanted[word];
  size_t shared = 0;
  for (const Words& line : wanted) {
    std::set<size_t> places;
    for (const Words& other : predicted) add_common_places(line, other, places);
    for (const size_t place : places) {
      size_t& in_predicted = left_predicted[line[place]];
      size_t& in_wanted = left_wanted[line[place]];
      if (in_predicted == 0 || in_wanted == 0) continue;
      --in_predicted;
      --in_wanted;
      ++shared;
    }
  }
  return f_measure(shared, word_count(predicted), word_count(wanted));
}

bool is_wide_punctuation(std::string_view character) {
  static const std::set<std::string, std::less<>> kMarks = {
      "\u3000", "、", "。", "〈", "〉", "《", "》", "「", "」", "『", "』", "【", "】", "〔",
      "〕",     "！", "＂", "＃", "＄", "％", "＆", "＇", "（", "）", "＊", "＋", "，", "－",
      "／",     "：", "；", "＜", "＝", "＞", "？", "＠", "［", "＼", "］", "＾", "＿", "｀",
      "｛",     "｜", "｝", "～", "｟", "｠", "“",  "”",  "‘",  "’",  "—",  "…",  "·",  "｡"};
  return kMarks.contains(character);
}

double share_equal(const Words& numbers, const std::string& wanted) {
  if (numbers.empty()) return 0;
  return static_cast<double>(std::ranges::count(numbers, wanted)) /
         static_cast<double>(numbers.size());
}

}  // namespace

std::string normalized_answer(std::string_view text) {
  std::string plain = lower_case(text);
  std::erase_if(plain, is_ascii_punctuation);
  std::string result;
  for (const std::string& word : split_words(plain)) {
    if (word == "a" || word == "an" || word == "the") continue;
    if (!result.empty()) result += ' ';
    result += word;
  }
  return result;
}

std::vector<std::string> normalized_characters(std::string_view text) {
  std::string plain = lower_case(text);
  std::erase_if(plain, [](char c) {
    return is_ascii_punctuation(c) || std::string_view(" \t\r\n\f\v").find(c) != std::string::npos;
  });
  std::vector<std::string> characters = split_characters(plain);
  std::erase_if(characters, is_wide_punctuation);
  return characters;
}

double token_f1(std::string_view prediction, std::span<const std::string> references) {
  const Words predicted = split_words(normalized_answer(prediction));
  return best_of(references, [&](const std::string& reference) {
    return multiset_f1(predicted, split_words(normalized_answer(reference)));
  });
}

double character_f1(std::string_view prediction, std::span<const std::string> references) {
  const Words predicted = normalized_characters(prediction);
  return best_of(references, [&](const std::string& reference) {
    return multiset_f1(predicted, normalized_characters(reference));
  });
}

double rouge_l(std::string_view prediction, std::span<const std::string> references) {
  const Words predicted = plain_words(prediction);
  return best_of(references, [&](const std::string& reference) {
    const Words wanted = plain_words(reference);
    return f_measure(common_length(wanted, predicted), predicted.size(), wanted.size());
  });
}

double rouge_l_characters(std::string_view prediction, std::span<const std::string> references) {
  const Words predicted = normalized_characters(prediction);
  return best_of(references, [&](const std::string& reference) {
    const Words wanted = normalized_characters(reference);
    return f_measure(common_length(wanted, predicted), predicted.size(), wanted.size());
  });
}

double rouge_l_sum(std::string_view prediction, std::span<const std::string> references) {
  const std::vector<Words> predicted = words_of_lines(prediction);
  return best_of(references, [&](const std::string& reference) {
    return summary_f(predicted, words_of_lines(reference));
  });
}

double edit_similarity(std::string_view a, std::string_view b) {
  const Words left = split_characters(a);
  const Words right = split_characters(b);
  if (left.empty() && right.empty()) return 1;
  const double shared = 2 * static_cast<double>(common_length(left, right)) /
                        static_cast<double>(left.size() + right.size());
  return std::nearbyint(shared * 100) / 100;
}

double code_similarity(std::string_view prediction, std::span<const std::string> references) {
  std::string line;
  for (const std::string& each : split_lines(prediction)) {
    const bool is_code =
        each.find_first_of("`#") == std::string::npos && each.find("//") == std::string::npos;
    if (!is_code) continue;
    line = each;
    break;
  }
  return best_of(references,
                 [&](const std::string& reference) { return edit_similarity(line, reference); });
}

double classification(std::string_view prediction, std::span<const std::string> references,
                      std::span<const std::string> classes) {
  return best_of(references, [&](const std::string& reference) {
    size_t named = 0;
    bool right = false;
    for (const std::string& name : classes) {
      if (name.empty() || prediction.find(name) == std::string_view::npos) continue;
      if (name == reference)
        right = true;
      else if (reference.find(name) != std::string::npos)
        continue;
      ++named;
    }
    return right ? 1.0 / static_cast<double>(named) : 0.0;
  });
}

std::vector<std::string> numbers_in(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789";
  std::vector<std::string> numbers;
  for (size_t at = text.find_first_of(kDigits); at != std::string_view::npos;
       at = text.find_first_of(kDigits, at)) {
    const size_t end = std::min(text.find_first_not_of(kDigits, at), text.size());
    std::string_view number = text.substr(at, end - at);
    while (number.size() > 1 && number.front() == '0') number.remove_prefix(1);
    numbers.emplace_back(number);
    at = end;
  }
  return numbers;
}

double count_score(std::string_view prediction, std::span<const std::string> references) {
  const Words numbers = numbers_in(prediction);
  return best_of(references, [&](const std::string& reference) {
    const Words wanted = numbers_in(reference);
    return wanted.empty() ? 0 : share_equal(numbers, wanted.front());
  });
}

double retrieval_score(std::string_view prediction, std::span<const std::string> references,
                       std::string_view label) {
  const Words numbers = numbers_in(prediction);
  return best_of(references, [&](const std::string& reference) {
    const size_t at = reference.find(label);
    if (at == std::string::npos) return 0.0;
    const Words wanted = numbers_in(std::string_view(reference).substr(at + label.size()));
    return wanted.empty() ? 0 : share_equal(numbers, wanted.front());
  });
}

}  // namespace fullbore::long_context
