#include "fullbore/data/byte_characters.h"

#include <algorithm>
#include <array>

#include "fullbore/data/utf8.h"

namespace fullbore {
namespace {

constexpr bool shows_itself(unsigned byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

struct ByteCharacters {
  std::array<char32_t, 256> character{};  ///< by byte
  std::array<int, 0x144> byte{};          ///< by character; -1: of none
  std::string order;

  ByteCharacters() {
    byte.fill(-1);
    char32_t next = 0x100;
    for (unsigned value = 0; value < 256; ++value) {
      character[value] = shows_itself(value) ? static_cast<char32_t>(value) : next++;
      byte[character[value]] = static_cast<int>(value);
    }
    for (const int value : byte)
      if (value >= 0) order.push_back(static_cast<char>(value));
  }
};

const ByteCharacters& table() {
  static const ByteCharacters characters;
  return characters;
}

}  // namespace

std::string to_byte_characters(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes)
    append_utf8(text, table().character[static_cast<unsigned char>(byte)]);
  return text;
}

bool from_byte_characters(std::string_view text, std::string& bytes) {
  bytes.clear();
  bool known = true;
  const size_t taken = decode_utf8(text, [&](char32_t character) {
    const int byte = character < table().byte.size() ? table().byte[character] : -1;
    known = known && byte >= 0;
    bytes.push_back(static_cast<char>(byte));
  });
  return known && taken == text.size();
}

const std::string& bytes_in_character_order() { return table().order; }

}  // namespace fullbore
