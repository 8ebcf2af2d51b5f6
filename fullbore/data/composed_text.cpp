#include "fullbore/data/composed_text.h"

#include <utf8proc.h>

#include <vector>

#include "fullbore/base/check.h"
#include "fullbore/data/unicode_classes.h"
#include "fullbore/data/utf8.h"

namespace fullbore {
namespace {

constexpr auto kOptions = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);

/// Which code points may compose or change places with what stands before them, or are written otherwise in form C.
/// All others begin a stretch that can be normalized by itself.
class Unsettled {
 public:
  static const Unsettled& instance() {
    static const Unsettled all;
    return all;
  }
  bool operator()(char32_t c) const {
    return (bits_[static_cast<size_t>(c) >> 6] >> (c & 63) & 1) != 0;
  }

 private:
  static constexpr utf8proc_int32_t kCodePoints = 0x110000;

  Unsettled() : bits_(kCodePoints / 64) {
    for (utf8proc_int32_t c = 0; c < kCodePoints; ++c) {
      const utf8proc_property_t* const property = utf8proc_get_property(c);
      if (property->combining_class != 0) set(c);
      if (property->decomp_type != 0 || property->decomp_seqindex == UINT16_MAX) continue;
      // A canonical decomposition: whether it comes back, and what its later characters are.
      utf8proc_int32_t parts[8] = {};
      int boundary = 0;
      const auto count = utf8proc_decompose_char(c, parts, std::size(parts), kOptions, &boundary);
      FB_CHECK(count > 0 && count <= 8, "{} parts of U+{:04X}", count, c);
      for (utf8proc_ssize_t i = 1; i < count; ++i) set(parts[i]);
      if (utf8proc_normalize_utf32(parts, count, kOptions) != 1 || parts[0] != c) set(c);
    }
    // Hangul is composed by arithmetic: vowels and final consonants.
    for (utf8proc_int32_t c = 0x1161; c <= 0x1175; ++c) set(c);
    for (utf8proc_int32_t c = 0x11A8; c <= 0x11C2; ++c) set(c);
  }
  void set(utf8proc_int32_t c) {
    bits_[static_cast<size_t>(c) >> 6] |= uint64_t{1} << (static_cast<uint32_t>(c) & 63);
  }
  std::vector<uint64_t> bits_;
};

void append_composed(std::string_view stretch, std::vector<utf8proc_int32_t>& work,
                     std::string& text) {
  const auto* const bytes = reinterpret_cast<const utf8proc_uint8_t*>(stretch.data());
  const auto size = static_cast<utf8proc_ssize_t>(stretch.size());
  work.resize(4 * stretch.size() + 8);
  const auto room = static_cast<utf8proc_ssize_t>(work.size());
  utf8proc_ssize_t count = utf8proc_decompose(bytes, size, work.data(), room, kOptions);
  FB_CHECK(count >= 0 && count <= room, "{}", utf8proc_errmsg(count));
  count = utf8proc_normalize_utf32(work.data(), count, kOptions);
  for (utf8proc_ssize_t i = 0; i < count; ++i)
    append_utf8(text, static_cast<char32_t>(work[static_cast<size_t>(i)]));
}

}  // namespace

std::string_view composed_text(std::string_view text, std::string& buffer) {
  // The first character that composes with another is U+0300: 0xCC 0x80.
  size_t at = 0;
  while (at < text.size() && static_cast<unsigned char>(text[at]) < 0xCC) ++at;
  if (at == text.size()) return text;
  static const Unsettled& unsettled = Unsettled::instance();
  std::vector<utf8proc_int32_t> work;
  size_t copied = 0;   // of `text`, into the buffer
  size_t settled = 0;  // where the last settled character begins
  if (at > 0) settled = at - 1;
  while (settled > 0 && (static_cast<unsigned char>(text[settled]) & 0xC0U) == 0x80) --settled;
  bool changed = false;
  size_t bytes = 0;
  while (at < text.size()) {
    if (!unsettled(character_at(text.data() + at, bytes))) {
      settled = at;
      at += bytes;
      continue;
    }
    while (at < text.size() && unsettled(character_at(text.data() + at, bytes))) at += bytes;
    if (!changed) buffer.clear();
    changed = true;
    buffer += text.substr(copied, settled - copied);
    append_composed(text.substr(settled, at - settled), work, buffer);
    copied = at;
    settled = at;
  }
  if (!changed) return text;
  buffer += text.substr(copied);
  return buffer;
}

}  // namespace fullbore
