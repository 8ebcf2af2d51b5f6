#include "fullbore/data/utf8.h"

#include <fmt/format.h>

namespace fullbore {
namespace {

bool is_continuation(unsigned byte) { return (byte & 0xC0) == 0x80; }

/// Bytes of the sequence that `lead` announces; 0 for a byte that can start none.
size_t announced_length(unsigned lead) {
  if (lead >= 0xC0 && lead <= 0xDF) return 2;
  if (lead >= 0xE0 && lead <= 0xEF) return 3;
  if (lead >= 0xF0 && lead <= 0xF7) return 4;
  return 0;
}

}  // namespace

std::string describe_utf8_error(std::string_view bytes, size_t offset) {
  const auto byte = [&](size_t index) { return static_cast<unsigned char>(bytes[index]); };
  const unsigned lead = byte(offset);
  if (is_continuation(lead))
    return fmt::format("byte 0x{:02X} continues a character that has not begun", lead);
  const size_t length = announced_length(lead);
  if (length == 0) return fmt::format("byte 0x{:02X} occurs in no UTF-8 text", lead);

  uint32_t value = lead & (0x7FU >> length);
  for (size_t i = 1; i < length; ++i) {
    if (offset + i == bytes.size())
      return fmt::format("a character of {} bytes ends after {}", length, i);
    if (!is_continuation(byte(offset + i)))
      return fmt::format("a character of {} bytes is broken off by byte 0x{:02X}", length,
                         byte(offset + i));
    value = value << 6 | (byte(offset + i) & 0x3FU);
  }
  if (value > 0x10FFFF) return fmt::format("U+{:04X} is past the end of Unicode", value);
  if (value >= 0xD800 && value <= 0xDFFF)
    return fmt::format("U+{:04X} is half of a surrogate pair, no character", value);
  return fmt::format("overlong form of U+{:04X}", value);
}

void append_utf8(std::string& text, char32_t code_point) {
  const auto value = static_cast<uint32_t>(code_point);
  const auto put = [&](uint32_t byte) { text.push_back(static_cast<char>(byte)); };
  if (value < 0x80) {
    put(value);
  } else if (value < 0x800) {
    put(0xC0 | value >> 6);
    put(0x80 | (value & 0x3F));
  } else if (value < 0x10000) {
    put(0xE0 | value >> 12);
    put(0x80 | (value >> 6 & 0x3F));
    put(0x80 | (value & 0x3F));
  } else {
    put(0xF0 | value >> 18);
    put(0x80 | (value >> 12 & 0x3F));
    put(0x80 | (value >> 6 & 0x3F));
    put(0x80 | (value & 0x3F));
  }
}

std::string character_text(char32_t code_point) {
  const auto value = static_cast<uint32_t>(code_point);
  std::string text = fmt::format("U+{:04X}", value);
  if (value < 0x20 || (value >= 0x7F && value < 0xA0)) return text;
  text += " '";
  append_utf8(text, code_point);
  return text + "'";
}

}  // namespace fullbore
