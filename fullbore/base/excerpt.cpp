#include "fullbore/base/excerpt.h"

#include <fmt/format.h>

#include <algorithm>

namespace fullbore {
namespace {

/// Bytes of the printable character that the text begins with; 0: it begins with none. RFC 3629, section 4;
/// overlong forms and surrogates count as characters here.
size_t character_bytes(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return first >= 0x20 && first != 0x7F ? 1 : 0;
  const size_t bytes = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < bytes) return 0;
  for (size_t i = 1; i < bytes; ++i)
    if ((byte(i) & 0xC0) != 0x80) return 0;
  return first == 0xC2 && byte(1) < 0xA0 ? 0 : bytes;  // U+0080 to U+009F are controls too
}

}  // namespace

std::string excerpt(std::string_view text, size_t most_bytes) {
  std::string shown;
  size_t at = 0;
  while (at < text.size()) {
    const size_t bytes = character_bytes(text.substr(at));
    if (at + std::max<size_t>(bytes, 1) > most_bytes) return shown + "...";
    if (bytes == 0)
      shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[at]));
    else
      shown += text.substr(at, bytes);
    at += std::max<size_t>(bytes, 1);
  }
  return shown;
}

}  // namespace fullbore
