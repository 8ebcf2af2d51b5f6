#pragma once
#include <cstdint>
#include <span>
#include <string_view>

namespace fullbore {

/// What a text shows of a model that repeats itself or has not learned to spell. Tokens are of any tokenizer.
struct SampleQuality {
  double distinct_four_grams =
      1;  ///< of all stretches of four tokens, the part that is different; 1: fewer than four
  int64_t longest_repetition =
      0;  ///< tokens of the longest stretch that stands in the text twice; both may overlap
  int64_t invalid_characters =
      0;  ///< U+FFFD, which stands for bytes that are no UTF-8, and control characters
};

/// `text`: what `tokens` decode to. Time and memory in proportion to the tokens.
SampleQuality sample_quality(std::span<const int32_t> tokens, std::string_view text);

/// Tokens of the longest stretch of `tokens` that `reference` holds too. Time in proportion to both, memory to `tokens`.
int64_t longest_copy(std::span<const int32_t> tokens, std::span<const int32_t> reference);

/// Makes the quality of samples part of `fullbore diagnose` of runs of models of texts.
void register_sample_quality();

}  // namespace fullbore
