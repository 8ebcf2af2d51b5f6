#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fullbore::long_context {

/// What an answer is measured by.
enum class AnswerMetric : uint8_t {
  f1,             ///< of words
  f1_characters,  ///< of Chinese
  rouge_l,
  rouge_l_characters,
  rouge_l_sum,
  classification,
  code_similarity,
  retrieval,
  retrieval_chinese,
  count,
  choice,         ///< a letter of the options
  stated_choice,  ///< the letter in "The correct answer is (X)"
  first_integer,
  last_integer,
  first_number,
  word,             ///< a reference stands in the answer as a word
  marked_sequence,  ///< behind the marker that options hold, by sequence_ratio.h; without it 0
  correct_prefix    ///< share of the reference's integers that are right from the first one on
};
std::string_view answer_metric_name(AnswerMetric metric);  ///< "F1", "ROUGE-L", "accuracy"

/// A question about a long text, of whichever benchmark.
struct BenchmarkItem {
  std::string id;
  std::string task;  ///< "hotpotqa", "passkey", "multiple choice"
  /// What results are told apart by besides the task: {"difficulty", "hard"}.
  std::vector<std::pair<std::string, std::string>> groups;
  std::string context;
  std::string question;  ///< what follows the context, up to the answer's first word
  std::vector<std::string>
      references;                    ///< of a choice: its letter, and the option where it is known
  std::vector<std::string> options;  ///< classes, or what the letters stand for
  AnswerMetric metric = AnswerMetric::f1;
  int64_t room = 64;        ///< tokens that an answer takes at most
  bool first_line = false;  ///< what is behind the answer's first line is not looked at

  std::string prompt() const { return context + question; }
};

/// Between 0 and 1. `guess_missing`: a stated_choice that is missing is worth 1/4, a guess.
double answer_score(const BenchmarkItem& item, std::string_view answer, bool guess_missing = false);

/// The letter that "The correct answer is (X)" or "... is X" states, A to D.
std::optional<char> stated_choice(std::string_view answer);
/// The letter of `options` letters that an answer names: behind "answer is" or "answer:", else the
/// only word or first character, else the last word that is such a letter.
std::optional<char> chosen_letter(std::string_view answer, size_t options);
/// Whole numbers with their signs, without leading zeros: "-7", "12".
std::vector<std::string> integers_in(std::string_view text);

}  // namespace fullbore::long_context
