#pragma once
#include <string>
#include <string_view>

namespace fullbore {

/// Byte-level vocabularies are written as text: each byte as one printable character. Bytes that
/// Latin-1 shows stand for themselves, the others are numbered from U+0100 on: a space is U+0120.
/// Source: Radford et al. 2019, the encoder published with GPT-2.
std::string to_byte_characters(std::string_view bytes);

/// The bytes that `text` stands for; false if it holds any other character, or is not UTF-8.
bool from_byte_characters(std::string_view text, std::string& bytes);

/// The 256 bytes in the order of their characters, which is that of their ids in GPT-2.
const std::string& bytes_in_character_order();

}  // namespace fullbore
