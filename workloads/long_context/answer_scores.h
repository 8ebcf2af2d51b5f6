#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fullbore::long_context {

/// How answers in free text are scored, each between 0 and 1, best over the references where there
/// are several. Texts are UTF-8; without references every score is 0.

/// Lower case, without ASCII punctuation and the words a, an, the; one space between words.
/// Source: Rajpurkar et al. 2016, SQuAD, its evaluation.
std::string normalized_answer(std::string_view text);
/// The same for texts without spaces between words: characters, without punctuation of either kind.
std::vector<std::string> normalized_characters(std::string_view text);

/// 2 P R / (P + R) of the words that a prediction and a reference share, as multisets.
double token_f1(std::string_view prediction, std::span<const std::string> references);
/// The same of characters: Chinese has no spaces to divide words by.
double character_f1(std::string_view prediction, std::span<const std::string> references);

/// 2 P R / (P + R) of the longest common subsequence of words: lower case, letters and digits only,
/// articles kept. Source: Lin 2004, "ROUGE", section 3.
double rouge_l(std::string_view prediction, std::span<const std::string> references);
/// Of characters.
double rouge_l_characters(std::string_view prediction, std::span<const std::string> references);
/// Of summaries: the union of the common subsequences of each line of the reference with all lines of
/// the prediction, no word counted more often than it stands in either. Ibid., section 3.2.
double rouge_l_sum(std::string_view prediction, std::span<const std::string> references);

/// 2 M / (|a| + |b|), M characters in common by insertions and deletions alone, in whole hundredths.
double edit_similarity(std::string_view a, std::string_view b);
/// The first line of a prediction that is code and no comment, by edit_similarity().
double code_similarity(std::string_view prediction, std::span<const std::string> references);

/// 1 / k where k classes are named in the prediction and the reference is one of them. Names that are
/// part of the reference's do not count.
double classification(std::string_view prediction, std::span<const std::string> references,
                      std::span<const std::string> classes);

/// Runs of digits in the text, without leading zeros.
std::vector<std::string> numbers_in(std::string_view text);
/// Share of the numbers in the prediction that are that of the reference.
double count_score(std::string_view prediction, std::span<const std::string> references);
/// The same by the number behind `label` in the reference: "Paragraph 12".
double retrieval_score(std::string_view prediction, std::span<const std::string> references,
                       std::string_view label);

}  // namespace fullbore::long_context
