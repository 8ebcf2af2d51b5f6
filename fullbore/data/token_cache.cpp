#include "fullbore/data/token_cache.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <bit>
#include <filesystem>
#include <memory>
#include <system_error>
#include <vector>

#include "fullbore/base/atomic_file.h"
#include "fullbore/base/hash.h"
#include "fullbore/data/token_layout.h"
#include "fullbore/data/utf8.h"

namespace fullbore {
namespace {

using HashState = std::unique_ptr<XXH64_state_t, decltype(&XXH64_freeState)>;

HashState start_hash() {
  HashState state(XXH64_createState(), &XXH64_freeState);
  XXH64_reset(state.get(), 0);
  return state;
}

std::string_view bytes_of(const void* data, size_t bytes) {
  return {static_cast<const char*>(data), bytes};
}

/// Turns text into the bytes of tokens, one piece after the other.
class Encoder {
 public:
  Encoder(const CharacterTokenizer& tokenizer, size_t width)
      : tokenizer_(tokenizer), width_(width) {}

  /// Puts the tokens in `bytes`. Failure names the first unknown character and its line.
  Status encode(std::string_view piece, std::vector<char>& bytes) {
    char32_t unknown = 0;
    uint64_t unknown_line = 0;            // 0: none so far
    bytes.resize(piece.size() * width_);  // a character has one byte at least
    char* out = bytes.data();
    decode_utf8(piece, [&](char32_t character) {
      const int32_t id = tokenizer_.id(character);
      if (id < 0 && unknown_line == 0) {
        unknown = character;
        unknown_line = line_;
      }
      if (character == U'\n') ++line_;
      std::memcpy(out, &id, width_);  // little endian: the low bytes come first
      out += width_;
    });
    bytes.resize(static_cast<size_t>(out - bytes.data()));
    tokens_ += bytes.size() / width_;
    if (unknown_line == 0) return success();
    return Failure{fmt::format("line {}: character {} is not among the tokenizer's {} characters",
                               unknown_line, character_text(unknown),
                               tokenizer_.vocabulary_size())};
  }
  uint64_t tokens() const { return tokens_; }

 private:
  const CharacterTokenizer& tokenizer_;
  size_t width_;
  uint64_t line_ = 1;
  uint64_t tokens_ = 0;
};

Status write_tokens(const std::string& text_path, const CharacterTokenizer& tokenizer,
                    const TokenKey& key, const std::string& path, FileSystem& files) {
  Result<TextReader> reader = TextReader::open(text_path);
  if (!reader.ok()) return Failure{reader.error()};
  Result<AtomicFile> file = AtomicFile::create(path, files);
  if (!file.ok()) return Failure{file.error()};

  const TokenHeader header = make_token_header(key);
  if (Status s = file.value().write(bytes_of(&header, sizeof header)); !s.ok()) return s;
  const HashState text_hash = start_hash();
  const HashState payload_hash = start_hash();
  Encoder encoder(tokenizer, header.token_bytes);
  std::vector<char> bytes;
  const auto flush = [&] {
    XXH64_update(payload_hash.get(), bytes.data(), bytes.size());
    return file.value().write(bytes_of(bytes.data(), bytes.size()));
  };
  for (;;) {
    const Result<std::string_view> piece = reader.value().next();
    if (!piece.ok()) return Failure{piece.error()};
    if (piece.value().empty()) break;
    XXH64_update(text_hash.get(), piece.value().data(), piece.value().size());
    bytes.clear();
    if (const Status s = encoder.encode(piece.value(), bytes); !s.ok())
      return Failure{fmt::format("{}: {}", text_path, s.error())};
    if (Status s = flush(); !s.ok()) return s;
  }
  if (XXH64_digest(text_hash.get()) != key.text_hash || encoder.tokens() != key.tokens)
    return Failure{fmt::format("{} changed while it was being read", text_path)};

  bytes.assign(token_padding(encoder.tokens() * header.token_bytes), '\0');
  if (Status s = flush(); !s.ok()) return s;
  const uint64_t digest = XXH64_digest(payload_hash.get());
  if (Status s = file.value().write(bytes_of(&digest, sizeof digest)); !s.ok()) return s;
  return file.value().commit();
}

}  // namespace

Result<CachedTokens> cached_tokens(const std::string& text_path, const TextSummary& summary,
                                   const CharacterTokenizer& tokenizer,
                                   const std::string& cache_folder, FileSystem& files) {
  const TokenKey key{summary.bytes, summary.hash, tokenizer.hash(),
                     static_cast<uint64_t>(tokenizer.vocabulary_size()), summary.characters};
  const std::string path = fmt::format("{}/tokens-{}-{}.bin", cache_folder, hash_hex(key.text_hash),
                                       hash_hex(key.tokenizer_hash));
  std::error_code error;
  std::string note = "made";
  if (std::filesystem::exists(path, error)) {
    Result<TokenFile> existing = TokenFile::open(path, key);
    if (existing.ok()) return CachedTokens{std::move(existing).value(), path, ""};
    note = "made again: " + existing.error();
  }
  std::filesystem::create_directories(cache_folder, error);
  if (error)
    return Failure{fmt::format("cannot create the folder {}: {}. data.cache_dir chooses another",
                               cache_folder, error.message())};
  if (const Status s = write_tokens(text_path, tokenizer, key, path, files); !s.ok())
    return Failure{s.error()};
  Result<TokenFile> made = TokenFile::open(path, key);
  if (!made.ok()) return Failure{made.error()};
  return CachedTokens{std::move(made).value(), path, std::move(note)};
}

}  // namespace fullbore
