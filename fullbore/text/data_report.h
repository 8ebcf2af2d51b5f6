#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "fullbore/text/trained_text_model.h"

namespace fullbore {

/// What token shards hold, one block each; as text for people or JSON. Ends with a new line.
std::string shards_report(const TokenCorpus& corpus, const Tokenizer& tokenizer);
std::string shards_json(const TokenCorpus& corpus, const Tokenizer& tokenizer);
/// The text of a document, or if `tokens` > 0 its first so many tokens, one a line.
std::string document_report(const TokenCorpus& corpus, const Tokenizer& tokenizer, int64_t document,
                            int64_t tokens);

struct TokenStatistics {
  std::vector<uint64_t> counts;           ///< by id
  std::vector<int64_t> document_lengths;  ///< in tokens, ascending
  double entropy_bits = 0;                ///< of single tokens
  int64_t unused = 0;                     ///< ids that never occur
};
TokenStatistics token_statistics(const TokenCorpus& corpus);
std::string statistics_report(const TextData& text, const TokenStatistics& statistics);
std::string statistics_json(const TextData& text, const TokenStatistics& statistics);

}  // namespace fullbore
