#pragma once
#include <cstdint>
#include <string_view>

namespace fullbore {

/// CRC-32C: the Castagnoli polynomial 0x1EDC6F41, reflected (RFC 3720, appendix B.4).
uint32_t crc32c(std::string_view bytes);

/// As the TFRecord format stores it, so that the checksum of a text that holds checksums is no
/// special one: rotated right by 15 bits, plus 0xa282ead8.
uint32_t masked_crc32c(std::string_view bytes);

}  // namespace fullbore
