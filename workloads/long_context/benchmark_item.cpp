#include "workloads/long_context/benchmark_item.h"

#include <algorithm>
#include <charconv>

#include "workloads/long_context/answer_scores.h"
#include "workloads/long_context/answer_words.h"
#include "workloads/long_context/sequence_ratio.h"

namespace fullbore::long_context {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word_character(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}

/// A capital letter alone, "(B)", "B.", at this place.
bool is_letter_word(std::string_view text, size_t at, size_t options) {
  const bool in_range = text[at] >= 'A' && static_cast<size_t>(text[at] - 'A') < options;
  return in_range && (at == 0 || !is_word_character(text[at - 1])) &&
         (at + 1 == text.size() || !is_word_character(text[at + 1]));
}

/// The first number, with its fraction, as a double.
std::optional<double> first_number(std::string_view text) {
  const auto begin = std::ranges::find_if(text, is_digit);
  if (begin == text.end()) return {};
  const char* at = text.data() + (begin - text.begin());
  if (at != text.data() && at[-1] == '-') --at;
  double value = 0;
  const auto [end, error] = std::from_chars(at, text.data() + text.size(), value);
  if (error != std::errc()) return {};
  return value;
}

bool same_number(std::string_view answer, std::string_view reference) {
  const std::optional<double> a = first_number(answer);
  const std::optional<double> b = first_number(reference);
  return a && b && *a == *b;
}

double choice_score(const BenchmarkItem& item, std::string_view answer) {
  for (const std::string& reference : item.references)  // the option itself, said in full
    if (reference.size() > 1 && without_spaces_around(answer) == reference) return 1;
  const std::optional<char> letter = chosen_letter(answer, item.options.size());
  return letter && std::ranges::find(item.references, std::string(1, *letter)) !=
                       item.references.end()
             ? 1
             : 0;
}

double stated_choice_score(const BenchmarkItem& item, std::string_view answer, bool guess_missing) {
  const std::optional<char> letter = stated_choice(answer);
  if (!letter) return guess_missing ? 0.25 : 0;
  return item.references.front() == std::string(1, *letter) ? 1 : 0;
}

double word_score(const BenchmarkItem& item, std::string_view answer) {
  std::string words = lower_case(answer);
  std::ranges::replace_if(
      words, [](char c) { return std::string_view("\n:\"'.,?!{}").find(c) != std::string::npos; },
      ' ');
  const std::vector<std::string> said = split_words(words);
  for (const std::string& reference : item.references)
    if (std::ranges::find(said, lower_case(reference)) != said.end()) return 1;
  return 0;
}

double prefix_score(const BenchmarkItem& item, std::string_view answer) {
  std::vector<std::string> wanted;
  for (const std::string& reference : item.references)
    for (std::string& number : integers_in(reference)) wanted.push_back(std::move(number));
  if (wanted.empty()) return 0;
  const std::vector<std::string> said = integers_in(answer);
  const auto end = std::ranges::mismatch(wanted, said).in1;
  return static_cast<double>(end - wanted.begin()) / static_cast<double>(wanted.size());
}

/// What follows the marker here and there, compared; an answer that does not begin with it is worth nothing.
double marked_sequence_score(const BenchmarkItem& item, std::string_view answer) {
  const std::string& marker = item.options.front();
  if (!answer.starts_with(marker)) return 0;
  std::string_view reference = item.references.front();
  if (reference.starts_with(marker)) reference.remove_prefix(marker.size());
  return sequence_ratio(answer.substr(marker.size()), reference);
}

/// Equal as integers to one of the references.
double integer_score(const BenchmarkItem& item, const std::vector<std::string>& said, bool last) {
  if (said.empty()) return 0;
  const std::string& number = last ? said.back() : said.front();
  for (const std::string& reference : item.references) {
    const std::vector<std::string> wanted = integers_in(reference);
    if (wanted.size() == 1 && wanted.front() == number) return 1;
  }
  return 0;
}

}  // namespace

std::string_view answer_metric_name(AnswerMetric metric) {
  switch (metric) {
    case AnswerMetric::f1:
    case AnswerMetric::f1_characters: return "F1";
    case AnswerMetric::rouge_l:
    case AnswerMetric::rouge_l_characters: return "ROUGE-L";
    case AnswerMetric::rouge_l_sum: return "ROUGE-Lsum";
    case AnswerMetric::code_similarity: return "edit similarity";
    case AnswerMetric::retrieval:
    case AnswerMetric::retrieval_chinese:
    case AnswerMetric::count: return "retrieval";
    case AnswerMetric::correct_prefix: return "correct prefix";
    case AnswerMetric::marked_sequence: return "sequence match";
    default: return "accuracy";
  }
}

double answer_score(const BenchmarkItem& item, std::string_view answer, bool guess_missing) {
  if (item.references.empty()) return 0;
  if (item.first_line) {
    answer.remove_prefix(std::min(answer.find_first_not_of('\n'), answer.size()));
    answer = answer.substr(0, answer.find('\n'));
  }
  switch (item.metric) {
    case AnswerMetric::f1: return token_f1(answer, item.references);
    case AnswerMetric::f1_characters: return character_f1(answer, item.references);
    case AnswerMetric::rouge_l: return rouge_l(answer, item.references);
    case AnswerMetric::rouge_l_characters: return rouge_l_characters(answer, item.references);
    case AnswerMetric::rouge_l_sum: return rouge_l_sum(answer, item.references);
    case AnswerMetric::classification: return classification(answer, item.references, item.options);
    case AnswerMetric::code_similarity: return code_similarity(answer, item.references);
    case AnswerMetric::retrieval: return retrieval_score(answer, item.references, "Paragraph");
    case AnswerMetric::retrieval_chinese: return retrieval_score(answer, item.references, "段落");
    case AnswerMetric::count: return count_score(answer, item.references);
    case AnswerMetric::choice: return choice_score(item, answer);
    case AnswerMetric::stated_choice: return stated_choice_score(item, answer, guess_missing);
    case AnswerMetric::first_integer: return integer_score(item, numbers_in(answer), false);
    case AnswerMetric::last_integer: return integer_score(item, integers_in(answer), true);
    case AnswerMetric::first_number: return same_number(answer, item.references.front()) ? 1 : 0;
    case AnswerMetric::word: return word_score(item, answer);
    case AnswerMetric::correct_prefix: return prefix_score(item, answer);
    case AnswerMetric::marked_sequence: return marked_sequence_score(item, answer);
  }
  return 0;
}

std::optional<char> stated_choice(std::string_view answer) {
  std::string plain(answer);
  std::erase(plain, '*');
  constexpr std::string_view kStatement = "The correct answer is ";
  for (const bool in_brackets : {true, false}) {
    for (size_t at = plain.find(kStatement); at != std::string::npos;
         at = plain.find(kStatement, at + 1)) {
      const std::string_view rest = std::string_view(plain).substr(at + kStatement.size());
      const size_t letter = in_brackets ? 1 : 0;
      if (rest.size() <= 2 * letter || rest[letter] < 'A' || rest[letter] > 'D') continue;
      if (!in_brackets || (rest[0] == '(' && rest[2] == ')')) return rest[letter];
    }
  }
  return {};
}

std::optional<char> chosen_letter(std::string_view answer, size_t options) {
  const auto first_after = [&](size_t at) -> std::optional<char> {
    while (at < answer.size() && !is_word_character(answer[at])) ++at;
    if (at < answer.size() && is_letter_word(answer, at, options)) return answer[at];
    return {};
  };
  const std::string lower = lower_case(answer);
  for (const std::string_view words : {"answer is", "answer:", "option is"})
    if (const size_t at = lower.find(words); at != std::string::npos)
      if (const std::optional<char> letter = first_after(at + words.size())) return letter;
  if (const std::optional<char> letter = first_after(0)) return letter;
  for (size_t at = answer.size(); at-- > 0;)
    if (is_letter_word(answer, at, options)) return answer[at];
  return {};
}

std::vector<std::string> integers_in(std::string_view text) {
  std::vector<std::string> integers;
  for (size_t at = 0; at < text.size();) {
    if (!is_digit(text[at])) {
      ++at;
      continue;
    }
    const bool negative = at > 0 && text[at - 1] == '-' && (at == 1 || !is_digit(text[at - 2]));
    size_t end = at;
    while (end < text.size() && is_digit(text[end])) ++end;
    while (at + 1 < end && text[at] == '0') ++at;
    integers.push_back((negative ? "-" : "") + std::string(text.substr(at, end - at)));
    at = end;
  }
  return integers;
}

}  // namespace fullbore::long_context
