#include "fullbore/base/printable.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

namespace fullbore {
namespace {

struct CodePoint {
  uint32_t value = 0;
  size_t bytes = 0;  ///< 0: it is none
};

/// The first of the text, by RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF.
CodePoint first_of(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < bytes) return {};
  uint32_t value = lead & (0xffU >> (bytes + 1));
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0U) != 0x80) return {};
    value = value << 6 | (byte(i) & 0x3fU);
  }
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  if (value < kLeast[bytes] || value > 0x10ffff || (value >= 0xd800 && value < 0xe000)) return {};
  return {value, bytes};
}

/// Marks, embeddings, overrides and isolates of direction, and separators of lines.
bool is_directional(uint32_t c) {
  return c == 0x200e || c == 0x200f || c == 0x061c || (c >= 0x2028 && c <= 0x202e) ||
         (c >= 0x2066 && c <= 0x2069);
}

std::string escaped(std::string_view text, bool one_line) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const auto [value, bytes] = first_of(text);
    const size_t taken = std::max<size_t>(bytes, 1);
    const bool control = value < 0x20 || (value >= 0x7f && value < 0xa0);
    if (bytes == 0)
      result += fmt::format("\\x{:02x}", static_cast<uint8_t>(text[0]));
    else if (value == '\n' || value == '\t')
      result += !one_line ? std::string(1, text[0]) : value == '\n' ? "\\n" : "\\t";
    else if (control)
      result += fmt::format("\\x{:02x}", value);
    else if (is_directional(value))
      result += fmt::format("\\u{:04x}", value);
    else
      result += text.substr(0, taken);
    text.remove_prefix(taken);
  }
  return result;
}

}  // namespace

std::string printable(std::string_view text) { return escaped(text, false); }

std::string printable_name(std::string_view name) { return escaped(name, true); }

}  // namespace fullbore
