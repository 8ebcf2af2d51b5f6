#pragma once
#include <memory>
#include <string>

#include "fullbore/data/character_tokenizer.h"
#include "fullbore/data/document_stream.h"
#include "fullbore/data/token_cache.h"
#include "fullbore/data/token_corpus.h"
#include "tests/support/scratch_folder.h"

namespace fullbore::testing {

/// The tokens of a path, made in the folder.
inline std::shared_ptr<const TokenCorpus> corpus_at(const ScratchFolder& folder,
                                                    const std::string& path,
                                                    const Tokenizer& tokenizer) {
  const TextSources sources = find_text(path).take_or_throw();
  const ContentHash content = hash_text_sources(sources).take_or_throw();
  std::vector<TokenShard> shards;
  shards.push_back(std::move(
      cached_tokens(sources, content, tokenizer, folder / "cache").take_or_throw().tokens));
  return std::make_shared<const TokenCorpus>(
      TokenCorpus::create(std::move(shards)).take_or_throw());
}

/// The tokens of a text by its own characters.
inline std::shared_ptr<const TokenCorpus> corpus_of(const ScratchFolder& folder,
                                                    const std::string& text) {
  const std::string path = folder.put("text.txt", text);
  const TextSources sources = find_text(path).take_or_throw();
  return corpus_at(folder, path, CharacterTokenizer(collect_characters(sources).take_or_throw()));
}

}  // namespace fullbore::testing
