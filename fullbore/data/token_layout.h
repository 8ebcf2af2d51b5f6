#pragma once
#include <bit>
#include <cstdint>
#include <cstring>

#include "fullbore/base/hash.h"
#include "fullbore/data/token_cache.h"

namespace fullbore {

static_assert(std::endian::native == std::endian::little, "token files are little endian");

/// The first 64 bytes of a token file, as token_cache.h lays them out.
struct TokenHeader {
  char magic[8];
  uint32_t version;
  uint32_t token_bytes;
  uint64_t tokens;
  uint64_t text_bytes;
  uint64_t text_hash;
  uint64_t tokenizer_hash;
  uint64_t vocabulary_size;
  uint64_t header_hash;
};
static_assert(sizeof(TokenHeader) == 64);

inline uint64_t token_header_hash(const TokenHeader& header) {
  return hash_bytes(&header, offsetof(TokenHeader, header_hash));
}

inline TokenHeader make_token_header(const TokenKey& key) {
  TokenHeader header{{'F', 'B', 'T', 'O', 'K', 'E', 'N', 'S'},
                     1,
                     key.vocabulary_size <= 0x10000 ? 2U : 4U,
                     key.tokens,
                     key.text_bytes,
                     key.text_hash,
                     key.tokenizer_hash,
                     key.vocabulary_size,
                     0};
  header.header_hash = token_header_hash(header);
  return header;
}

/// Zero bytes that follow `bytes` of tokens.
inline uint64_t token_padding(uint64_t bytes) { return (8 - bytes % 8) % 8; }

}  // namespace fullbore
