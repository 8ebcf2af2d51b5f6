#include "fullbore/data/pre_tokenizer.h"

#include <array>

#include "fullbore/data/unicode_classes.h"

namespace fullbore {
namespace {

using enum CharacterClass;

constexpr uint8_t kBeyondAscii = 0xFF;

/// The class of every ASCII byte as a number; kBeyondAscii for the bytes of longer sequences.
constexpr std::array<uint8_t, 256> kByteClasses = [] {
  std::array<uint8_t, 256> classes{};
  for (size_t byte = 0; byte < 256; ++byte) {
    const bool letter = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
    const bool number = byte >= '0' && byte <= '9';
    const bool space = byte == ' ' || (byte >= 0x9 && byte <= 0xD);
    classes[byte] = byte >= 0x80 ? kBeyondAscii
                                 : static_cast<uint8_t>(letter   ? kLetter
                                                        : number ? kNumber
                                                        : space  ? kSpace
                                                                 : kOther);
  }
  return classes;
}();

uint8_t byte_class(const char* at) { return kByteClasses[static_cast<unsigned char>(*at)]; }

/// The class of the character at `at`; `bytes` becomes its length.
CharacterClass class_at(const char* at, size_t& bytes) {
  const uint8_t quick = byte_class(at);
  if (quick != kBeyondAscii) {
    bytes = 1;
    return static_cast<CharacterClass>(quick);
  }
  static const UnicodeClasses& classes = UnicodeClasses::instance();
  return classes.of(character_at(at, bytes));
}

const char* run_end(const char* at, const char* end, CharacterClass wanted) {
  for (;;) {
    while (at < end && byte_class(at) == static_cast<uint8_t>(wanted)) ++at;
    if (at == end || byte_class(at) != kBeyondAscii) return at;
    size_t bytes = 0;
    if (class_at(at, bytes) != wanted) return at;
    at += bytes;
  }
}

/// Length of 's 't 'm 'd 're 've 'll at an apostrophe; 0 if it is none of them.
size_t contraction(const char* at, const char* end) {
  if (end - at < 2) return 0;
  if (at[1] == 's' || at[1] == 't' || at[1] == 'm' || at[1] == 'd') return 2;
  if (end - at < 3) return 0;
  const bool two = (at[1] == 'r' && at[2] == 'e') || (at[1] == 'v' && at[2] == 'e') ||
                   (at[1] == 'l' && at[2] == 'l');
  return two ? 3 : 0;
}

/// White space that ends the text is one word; else its last character is left to what follows.
const char* space_end(const char* at, const char* end) {
  const char* last = at;
  const char* next = at;
  size_t bytes = 0;
  while (next < end && class_at(next, bytes) == kSpace) {
    last = next;
    next += bytes;
  }
  return next == end || last == at ? next : last;
}

}  // namespace

const char* word_end(const char* at, const char* end) {
  if (*at == '\'')
    if (const size_t bytes = contraction(at, end); bytes > 0) return at + bytes;
  size_t bytes = 0;
  CharacterClass kind = class_at(at, bytes);
  if (*at == ' ' && end - at > 1) {
    const CharacterClass after = class_at(at + 1, bytes);
    if (after != kSpace) {
      kind = after;
      ++at;
    }
  }
  return kind == kSpace ? space_end(at, end) : run_end(at + bytes, end, kind);
}

size_t last_word_boundary(std::string_view text) {
  const auto continues = [&](size_t at) {
    return (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80;
  };
  bool space_follows = false;
  size_t end = text.size();  // of the character looked at
  while (end > 0) {
    size_t begin = end - 1;
    while (continues(begin)) --begin;
    size_t bytes = 0;
    const bool is_space = class_at(text.data() + begin, bytes) == kSpace;
    if (space_follows && !is_space) return end;
    space_follows = is_space;
    end = begin;
  }
  return 0;
}

}  // namespace fullbore
