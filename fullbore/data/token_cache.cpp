#include "fullbore/data/token_cache.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>
#include <utility>

namespace fullbore {

Result<CachedTokens> cached_tokens(const TextSources& sources, const ContentHash& content,
                                   const Tokenizer& tokenizer, const std::string& cache_folder,
                                   const TokenizeOptions& options, FileSystem& files) {
  const TokenKey key{content.bytes(), content.hash(), tokenizer.hash()};
  const std::string path =
      fmt::format("{}/{}-{}-v{}.tokens", cache_folder, hash_hex(key.content_hash),
                  hash_hex(key.tokenizer_hash), kTokenVersion);
  std::error_code error;
  std::string note = "made";
  if (std::filesystem::exists(path, error)) {
    Result<TokenShard> existing = TokenShard::open(path);
    if (existing.ok() && existing.value().key() == key)
      return CachedTokens{std::move(existing).value(), ""};
    note =
        "made again: " + (existing.ok() ? path + " was made from another text" : existing.error());
  }
  std::filesystem::create_directories(cache_folder, error);
  if (error)
    return Failure{fmt::format("cannot create the folder {}: {}. data.cache_dir chooses another",
                               cache_folder, error.message())};
  TokenizeOptions whole = options;
  whole.shard_tokens = 0;
  const Result<std::vector<std::string>> written =
      tokenize_text(sources, content, tokenizer, path, whole, files);
  if (!written.ok()) return Failure{written.error()};
  Result<TokenShard> made = TokenShard::open(path);
  if (!made.ok()) return Failure{made.error()};
  return CachedTokens{std::move(made).value(), std::move(note)};
}

}  // namespace fullbore
