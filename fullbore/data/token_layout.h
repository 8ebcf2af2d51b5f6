#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>

#include "fullbore/base/hash.h"

namespace fullbore {

static_assert(std::endian::native == std::endian::little, "token shards are little endian");

/// A token shard, all integers little endian:
///
///   0               header, 64 bytes
///   64              tokens, u16 or u32, zero-padded to 8 bytes
///                   document ends, u64 each, in tokens: ascending, the last is the number of tokens
///                   file ends, u64 each, in documents: ascending, the last is their number
///                   the tokenizer's JSON, zero-padded to 8 bytes
///                   block hashes, u64 each: xxHash64 of every MiB from byte 64 to here
///   end - 64        footer, 64 bytes: last, so that a shard is written from front to back
struct TokenHeader {
  char magic[8];
  uint32_t version;
  uint32_t token_bytes;  ///< 2 if vocabulary_size <= 65536, else 4
  uint64_t content_bytes;
  uint64_t content_hash;
  uint64_t tokenizer_hash;
  uint64_t vocabulary_size;
  int32_t end_of_document;  ///< the token after each document, or -1
  uint32_t zero;
  uint64_t header_hash;  ///< xxHash64 of bytes 0-55
};
static_assert(sizeof(TokenHeader) == 64);

struct TokenFooter {
  uint64_t tokens;
  uint64_t documents;
  uint64_t files;
  uint64_t tokenizer_bytes;  ///< without padding
  uint64_t text_bytes;       ///< UTF-8 that the tokens stand for
  uint64_t zero;
  uint64_t blocks_hash;  ///< xxHash64 of the block hashes
  uint64_t footer_hash;  ///< xxHash64 of the footer's bytes 0-55
};
static_assert(sizeof(TokenFooter) == 64);

constexpr char kTokenMagic[8] = {'F', 'B', 'T', 'O', 'K', 'E', 'N', 'S'};
constexpr uint32_t kTokenVersion = 2;
constexpr uint64_t kTokenBlockBytes = uint64_t{1} << 20;

inline uint64_t token_header_hash(const TokenHeader& header) {
  return hash_bytes(&header, offsetof(TokenHeader, header_hash));
}
inline uint64_t token_footer_hash(const TokenFooter& footer) {
  return hash_bytes(&footer, offsetof(TokenFooter, footer_hash));
}
constexpr uint32_t token_width(uint64_t vocabulary_size) {
  return vocabulary_size <= 0x10000 ? 2 : 4;
}
constexpr uint64_t padded_to_8(uint64_t bytes) { return (bytes + 7) / 8 * 8; }

}  // namespace fullbore
