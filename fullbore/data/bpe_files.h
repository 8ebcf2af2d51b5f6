#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "fullbore/data/bpe_tokenizer.h"

namespace fullbore {

/// A Hugging Face tokenizer.json (version 1.0) of GPT-2's kind, or Llama 3's, Qwen2's or SmolLM's: model BPE of bytes, with
/// the pipeline of bpe_pipeline.h. Anything else that would change the tokens is refused by name.
/// `source` is how messages name where it came from: a path.
Result<std::shared_ptr<const BpeTokenizer>> parse_tokenizer_json(std::string_view json,
                                                                 const std::string& source);

/// The two files that GPT-2 was published with. Tokens that are neither a byte nor made by a merge
/// are special ones: "<|endoftext|>".
Result<std::shared_ptr<const BpeTokenizer>> parse_vocabulary_and_merges(std::string_view vocabulary,
                                                                        std::string_view merges,
                                                                        const std::string& source);

/// A tokenizer.json that parse_tokenizer_json() and the Python package `tokenizers` read.
std::string tokenizer_json(const BpeVocabulary& vocabulary);

}  // namespace fullbore
