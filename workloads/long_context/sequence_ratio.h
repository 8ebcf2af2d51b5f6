#pragma once
#include <string_view>

namespace fullbore::long_context {

/// How alike two texts are, by code points: 2 M / (|a| + |b|), where M is the size of the longest block in common, and
/// of those to its left and to its right, and so on (Ratcliff, Metzener 1988, "Pattern matching: the gestalt
/// approach"). As Python's difflib.SequenceMatcher(None, a, b).ratio(): in a b of 200 code points or more, those that
/// make up more than 1 % of it begin no block. 1 of two empty texts.
double sequence_ratio(std::string_view a, std::string_view b);

}  // namespace fullbore::long_context
