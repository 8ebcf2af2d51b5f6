#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace fullbore {

/// xxHash64 of the bytes: content keys of caches and checksums of files; not cryptographic.
uint64_t hash_bytes(const void* data, size_t size, uint64_t seed = 0);
inline uint64_t hash_text(std::string_view text, uint64_t seed = 0) {
  return hash_bytes(text.data(), text.size(), seed);
}
std::string hash_hex(uint64_t hash);  ///< 16 hexadecimal digits

}  // namespace fullbore
