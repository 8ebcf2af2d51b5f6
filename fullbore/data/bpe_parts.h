#pragma once
#include <string>
#include <utility>
#include <vector>

#include "fullbore/data/bpe_tokenizer.h"

namespace fullbore {

/// A byte-level BPE as its files write it: tokens in byte characters (byte_characters.h).
struct BpeParts {
  std::vector<std::pair<std::string, int64_t>> vocabulary;
  std::vector<std::pair<std::string, std::string>> merges;
  std::vector<SpecialToken> added;   ///< with their texts as they are, in the vocabulary or not
  bool find_special_tokens = false;  ///< those of the vocabulary that nothing makes
  BpeSettings settings;              ///< but for the beginning
  std::string beginning;  ///< text of the special token before a text; "" if there is none
};

/// Failure names what does not fit, without the source.
Result<std::shared_ptr<const BpeTokenizer>> assemble_bpe(const BpeParts& parts);

}  // namespace fullbore
