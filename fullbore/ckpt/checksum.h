#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

struct XXH64_state_s;  // of xxhash.h

namespace fullbore {

constexpr std::string_view kFormatKey = "fullbore.format";
constexpr std::string_view kFormatVersion = "1";
constexpr std::string_view kDataChecksumKey = "fullbore.checksum.data";
constexpr std::string_view kHeaderChecksumKey = "fullbore.checksum.header";
constexpr std::string_view kZeroChecksum = "0000000000000000";

/// xxHash64 of bytes that come piece by piece.
class StreamingHash {
 public:
  StreamingHash();
  ~StreamingHash();
  StreamingHash(const StreamingHash&) = delete;
  StreamingHash& operator=(const StreamingHash&) = delete;
  void add(const void* data, size_t bytes);
  uint64_t value() const;

 private:
  XXH64_state_s* state_;
};

/// How the header's JSON spells its own checksum. A quote inside a JSON text is escaped, so this
/// can stand nowhere else.
std::string header_checksum_text(std::string_view digits);

/// Of the 8 bytes of length and of the header, in which the checksum's digits are zeros.
uint64_t header_checksum(std::string_view json);

}  // namespace fullbore
