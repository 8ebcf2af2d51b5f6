#include "fullbore/base/hash.h"

#include <fmt/format.h>
#include <xxhash.h>

namespace fullbore {

uint64_t hash_bytes(const void* data, size_t size, uint64_t seed) {
  return XXH64(data, size, seed);
}

std::string hash_hex(uint64_t hash) { return fmt::format("{:016x}", hash); }

}  // namespace fullbore
