#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace fullbore {

/// Calls visit(char32_t) for each code point. Returns the number of bytes taken: all of them, or up
/// to the first malformed sequence, about which describe_utf8_error() tells the rest.
/// Source: The Unicode Standard 15.0, table 3-7 (well-formed UTF-8 byte sequences).
template <class Visit>
size_t decode_utf8(std::string_view bytes, const Visit& visit) {
  const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
  const size_t size = bytes.size();
  size_t at = 0;
  // The second byte's range is what excludes overlong forms, surrogates and values past U+10FFFF.
  const auto continues = [&](size_t index, unsigned low = 0x80, unsigned high = 0xBF) {
    return index < size && data[index] >= low && data[index] <= high;
  };
  while (at < size) {
    const unsigned lead = data[at];
    if (lead < 0x80) {
      visit(static_cast<char32_t>(lead));
      ++at;
    } else if (lead >= 0xC2 && lead <= 0xDF) {
      if (!continues(at + 1)) break;
      visit(static_cast<char32_t>((lead & 0x1F) << 6 | (data[at + 1] & 0x3F)));
      at += 2;
    } else if (lead >= 0xE0 && lead <= 0xEF) {
      if (!continues(at + 1, lead == 0xE0 ? 0xA0 : 0x80, lead == 0xED ? 0x9F : 0xBF) ||
          !continues(at + 2))
        break;
      visit(static_cast<char32_t>((lead & 0x0F) << 12 | (data[at + 1] & 0x3FU) << 6 |
                                  (data[at + 2] & 0x3FU)));
      at += 3;
    } else if (lead >= 0xF0 && lead <= 0xF4) {
      if (!continues(at + 1, lead == 0xF0 ? 0x90 : 0x80, lead == 0xF4 ? 0x8F : 0xBF) ||
          !continues(at + 2) || !continues(at + 3))
        break;
      visit(static_cast<char32_t>((lead & 0x07) << 18 | (data[at + 1] & 0x3FU) << 12 |
                                  (data[at + 2] & 0x3FU) << 6 | (data[at + 3] & 0x3FU)));
      at += 4;
    } else {
      break;
    }
  }
  return at;
}

/// Why decode_utf8 stopped at `offset` of `bytes`: "overlong form of U+002F".
std::string describe_utf8_error(std::string_view bytes, size_t offset);

/// `code_point` must be a Unicode scalar value.
void append_utf8(std::string& text, char32_t code_point);

/// "U+00E9 'é'"; control characters without the picture.
std::string character_text(char32_t code_point);

}  // namespace fullbore
