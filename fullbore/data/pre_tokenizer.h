#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace fullbore {

/// How a text is split into the words inside which byte-level BPE merges, by the family of models that does it so. The
/// classes \p{L}, \p{N} and \s are those of Unicode 16. Sources: the encoder published with GPT-2 (Radford et al. 2019),
/// and the tokenizer.json files published with Llama 3, Qwen2 and SmolLM.
enum class WordSplit : uint8_t {
  /// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
  kGpt2,
  /// (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
  kLlama3,
  /// The same with \p{N} for \p{N}{1,3}: every digit is a word.
  kQwen2,
  /// Every digit is a word, and what stands between digits is split as GPT-2 does, as a text of its own. Digits are
  /// those of Unicode 17, as the pre-tokenizer "Digits" of the Python package tokenizers 0.23 has them.
  kSmolLm,
};

/// The split of one of the expressions above, or of another spelling of the same; nothing for any other expression.
std::optional<WordSplit> known_expression(std::string_view expression);
/// The expression of a split as tokenizer.json has it; of kSmolLm, which is no single one, GPT-2's.
std::string_view expression_of(WordSplit split);

/// The end of the word that begins at `at`; needs at < end, well-formed UTF-8, and that a word begins there.
const char* word_end(const char* at, const char* end, WordSplit split = WordSplit::kGpt2);

/// The largest position where `text` may be cut in two so that the words of the halves are the words of the whole,
/// whatever follows: between a character and a white-space character after it. 0: none.
size_t last_word_boundary(std::string_view text, WordSplit split = WordSplit::kGpt2);

}  // namespace fullbore
