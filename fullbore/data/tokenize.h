#pragma once
#include <functional>
#include <string>
#include <vector>

#include "fullbore/base/file_system.h"
#include "fullbore/base/result.h"
#include "fullbore/data/text_sources.h"
#include "fullbore/data/tokenizer.h"

namespace fullbore {

/// Told after each stretch of text how many of the sources' bytes are done; false stops the work.
using TextProgress = std::function<bool(uint64_t done, uint64_t bytes)>;

struct TokenizeOptions {
  int workers = 1;  ///< threads that encode; no effect on the result
  int64_t shard_tokens =
      0;                  ///< begin another shard at the first document end after so many; 0: never
  TextProgress progress;  ///< may be empty
};

/// Writes the tokens of a text to the shard `path`; with shard_tokens to `path` with "-00000",
/// "-00001", ... before its extension. Streams: memory does not grow with the text. Returns the paths.
/// Failure: what DocumentStream refuses, a character that the tokenizer lacks (named, with file and line),
/// a text that is not `content` any more, no text in any document, a shard that cannot be written, or
/// "stopped" by progress. What was complete before a failure stays.
Result<std::vector<std::string>> tokenize_text(const TextSources& sources,
                                               const ContentHash& content,
                                               const Tokenizer& tokenizer, const std::string& path,
                                               const TokenizeOptions& options = {},
                                               FileSystem& files = system_files());

}  // namespace fullbore
