#pragma once
#include <memory>
#include <string>
#include <vector>

#include "fullbore/data/bpe_tokenizer.h"
#include "fullbore/data/text_sources.h"
#include "fullbore/data/tokenize.h"

namespace fullbore {

struct BpeTrainingOptions {
  int64_t vocabulary_size = 8192;  ///< the 256 bytes and the special tokens included
  std::vector<std::string> special_tokens = {"<|endoftext|>"};  ///< they get the last ids
  int workers = 1;        ///< threads that count words; no effect on the result
  TextProgress progress;  ///< of the counting; may be empty
};

/// Learns a byte-level BPE from a text: again and again the most frequent pair of neighbouring tokens
/// inside words becomes a token; of equally frequent ones the pair with the smaller ids. Ids are the
/// bytes in GPT-2's order, then the tokens as they are made. Ends early when no pair is left.
/// Memory grows with the number of distinct words. Failure: what DocumentStream refuses, "stopped" by
/// progress, a vocabulary too small for bytes and special tokens, an empty or repeated special token.
Result<std::shared_ptr<const BpeTokenizer>> train_bpe(const TextSources& sources,
                                                      const BpeTrainingOptions& options);

}  // namespace fullbore
