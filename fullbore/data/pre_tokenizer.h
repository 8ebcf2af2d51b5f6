#pragma once
#include <cstddef>
#include <string_view>

namespace fullbore {

/// Splits text into the words inside which byte-level BPE merges, as GPT-2 does by the expression
///
///   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
///
/// with the classes of Unicode 16. Source: Radford et al. 2019, the encoder published with GPT-2.
///
/// Returns the end of the word that begins at `at`; needs at < end and well-formed UTF-8.
const char* word_end(const char* at, const char* end);

/// The largest position where `text` may be cut in two so that the words of the halves are the words
/// of the whole, whatever follows: between a character and a white-space character after it. 0: none.
size_t last_word_boundary(std::string_view text);

}  // namespace fullbore
