#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fullbore/data/bpe_tokenizer.h"

namespace fullbore {

/// The families whose rank files are known: "gpt-2", "llama-3", "llama-3.1", "qwen2". A rank file says neither how text is
/// split nor which special tokens there are.
std::vector<std::string> rank_file_families();

/// A rank file, as the Python package tiktoken reads and Llama 3 is published with (tokenizer.model): a line for each token,
/// its bytes in base64 and its rank, which is its id. Special tokens follow the last rank, those of `family`. Two tokens
/// merge if they make a token together, and the lowest rank goes first; a word that is a token is this token. Failure names
/// `source` and the line; UsageError: an unknown family.
Result<std::shared_ptr<const BpeTokenizer>> parse_rank_file(std::string_view text,
                                                            std::string_view family,
                                                            const std::string& source);
/// The same from a file.
Result<std::shared_ptr<const Tokenizer>> load_rank_file(const std::string& path,
                                                        std::string_view family);

}  // namespace fullbore
