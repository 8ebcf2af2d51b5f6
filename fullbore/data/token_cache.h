#pragma once
#include <string>

#include "fullbore/data/token_shard.h"
#include "fullbore/data/tokenize.h"

namespace fullbore {

struct CachedTokens {
  TokenShard tokens;
  /// How the file came to be: "" when it was there already, else "made" or why it was made again.
  std::string note;
};

/// The tokens of a text, from `cache_folder` (created when missing) or made and put there. Files are
/// named by content, so that a text edited or moved never meets another's tokens; a torn, altered or
/// foreign file is made again. Failure: that of tokenize_text(), or the folder cannot be written.
Result<CachedTokens> cached_tokens(const TextSources& sources, const ContentHash& content,
                                   const Tokenizer& tokenizer, const std::string& cache_folder,
                                   const TokenizeOptions& options = {},
                                   FileSystem& files = system_files());

}  // namespace fullbore
