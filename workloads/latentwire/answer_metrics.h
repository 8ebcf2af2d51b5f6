#pragma once
#include <span>
#include <string>
#include <string_view>

namespace fullbore::latentwire {

/// An answer as SQuAD's evaluation compares it: lower case (ASCII letters), ASCII punctuation deleted, then the words a,
/// an and the deleted, and white space collapsed.
/// Source: Rajpurkar et al. 2016, arXiv:1606.05250, section 6.1, and their evaluation of version 1.1.
std::string normalised_answer(std::string_view answer);

struct AnswerScore {
  double exact_match = 0;  ///< 1 where the normalised answers are equal
  double f1 = 0;           ///< of the words they share, each as often as it stands in both
};
/// Two answers without a word are equal; of one without, the score is 0.
AnswerScore answer_score(std::string_view predicted, std::string_view reference);
/// The largest of each score over the references. There is at least one.
AnswerScore answer_score(std::string_view predicted, std::span<const std::string> references);

}  // namespace fullbore::latentwire
