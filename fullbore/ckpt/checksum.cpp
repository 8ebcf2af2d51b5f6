#include "fullbore/ckpt/checksum.h"

#include <fmt/format.h>
#include <xxhash.h>

namespace fullbore {

StreamingHash::StreamingHash() : state_(XXH64_createState()) { XXH64_reset(state_, 0); }
StreamingHash::~StreamingHash() { XXH64_freeState(state_); }

void StreamingHash::add(const void* data, size_t bytes) {
  if (bytes > 0) XXH64_update(state_, data, bytes);
}

uint64_t StreamingHash::value() const { return XXH64_digest(state_); }

std::string header_checksum_text(std::string_view digits) {
  return fmt::format("\"{}\":\"{}\"", kHeaderChecksumKey, digits);
}

uint64_t header_checksum(std::string_view json) {
  const uint64_t length = json.size();
  StreamingHash hash;
  hash.add(&length, sizeof length);
  hash.add(json.data(), json.size());
  return hash.value();
}

}  // namespace fullbore
