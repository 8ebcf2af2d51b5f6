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

bool ends_line(const char* at) { return *at == '\n' || *at == '\r'; }

/// Numbers that Unicode 17 added, which are no \p{N} of version 16.
bool is_newer_digit(char32_t c) {
  return (c >= 0x11DE0 && c <= 0x11DE9) || (c >= 0x16FF4 && c <= 0x16FF6);
}

/// The class of the character at `at`; `bytes` becomes its length.
template <WordSplit split>
CharacterClass class_at(const char* at, size_t& bytes) {
  const uint8_t quick = byte_class(at);
  if (quick != kBeyondAscii) {
    bytes = 1;
    return static_cast<CharacterClass>(quick);
  }
  static const UnicodeClasses& classes = UnicodeClasses::instance();
  const char32_t character = character_at(at, bytes);
  if (split == WordSplit::kSmolLm && is_newer_digit(character)) return kNumber;
  return classes.of(character);
}

template <WordSplit split>
const char* run_end(const char* at, const char* end, CharacterClass wanted) {
  for (;;) {
    while (at < end && byte_class(at) == static_cast<uint8_t>(wanted)) ++at;
    if (at == end || byte_class(at) != kBeyondAscii) return at;
    size_t bytes = 0;
    if (class_at<split>(at, bytes) != wanted) return at;
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

/// The same in letters of either case; s has a third form, U+017F.
size_t contraction_of_any_case(const char* at, const char* end) {
  constexpr std::string_view kLongS = "\u017F";
  const auto small = [&](int index) { return index < end - at ? at[index] | 0x20 : 0; };
  const char lower[] = {'\'', static_cast<char>(small(1)), static_cast<char>(small(2))};
  if (const size_t bytes = contraction(lower, lower + 3); bytes > 0) return bytes;
  return std::string_view(at + 1, end).starts_with(kLongS) ? 1 + kLongS.size() : 0;
}

/// White space that ends the text (or, for SmolLM, what stands before a digit) is one word; else its last character is
/// left to what follows.
template <WordSplit split>
const char* space_end(const char* at, const char* end) {
  constexpr bool kLineEndsEndWords = split == WordSplit::kLlama3 || split == WordSplit::kQwen2;
  const char* last = at;
  const char* next = at;
  const char* line = nullptr;  // after the last line end
  size_t bytes = 0;
  CharacterClass kind = kSpace;
  while (next < end && (kind = class_at<split>(next, bytes)) == kSpace) {
    last = next;
    next += bytes;
    if (kLineEndsEndWords && ends_line(last)) line = next;
  }
  if (line != nullptr) return line;
  const bool ends = next == end || (split == WordSplit::kSmolLm && kind == kNumber);
  return ends || last == at ? next : last;
}

/// GPT-2's words, and SmolLM's.
template <WordSplit split>
const char* plain_word_end(const char* at, const char* end) {
  if (*at == '\'')
    if (const size_t bytes = contraction(at, end); bytes > 0) return at + bytes;
  size_t bytes = 0;
  CharacterClass kind = class_at<split>(at, bytes);
  if (*at == ' ' && end - at > 1) {
    size_t more = 0;
    const CharacterClass after = class_at<split>(at + 1, more);
    if (after != kSpace && !(split == WordSplit::kSmolLm && after == kNumber)) {
      kind = after;
      bytes = 1 + more;
    }
  }
  if (kind == kSpace) return space_end<split>(at, end);
  if (split == WordSplit::kSmolLm && kind == kNumber) return at + bytes;
  return run_end<split>(at + bytes, end, kind);
}

/// The words of Llama 3 and Qwen2.
template <WordSplit split>
const char* marked_word_end(const char* at, const char* end) {
  if (*at == '\'')
    if (const size_t bytes = contraction_of_any_case(at, end); bytes > 0) return at + bytes;
  size_t bytes = 0;
  const CharacterClass kind = class_at<split>(at, bytes);
  const char* next = at + bytes;
  if (kind == kLetter) return run_end<split>(next, end, kLetter);
  size_t more = 0;
  if (kind == kNumber) {
    constexpr int kMostDigits = split == WordSplit::kLlama3 ? 3 : 1;
    for (int digits = 1; digits < kMostDigits && next < end; ++digits) {
      if (class_at<split>(next, more) != kNumber) break;
      next += more;
    }
    return next;
  }
  const CharacterClass after = next < end ? class_at<split>(next, more) : kNumber;
  // One character that is neither letter nor number goes with the letters behind it.
  if (after == kLetter && !ends_line(at)) return run_end<split>(next + more, end, kLetter);
  if (kind == kOther || (*at == ' ' && after == kOther)) {
    next = run_end<split>(next, end, kOther);
    while (next < end && ends_line(next)) ++next;
    return next;
  }
  return space_end<split>(at, end);
}

template <WordSplit split>
size_t last_boundary(std::string_view text) {
  constexpr bool kTakesLineEnds = split == WordSplit::kLlama3 || split == WordSplit::kQwen2;
  const auto continues = [&](size_t at) {
    return (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80;
  };
  bool space_follows = false;
  size_t end = text.size();  // of the character looked at
  while (end > 0) {
    size_t begin = end - 1;
    while (continues(begin)) --begin;
    size_t bytes = 0;
    const CharacterClass kind = class_at<split>(text.data() + begin, bytes);
    // Signs take the line ends behind them along.
    const bool takes = kTakesLineEnds && kind == kOther;
    if (space_follows && kind != kSpace && !(takes && ends_line(text.data() + end))) return end;
    space_follows = kind == kSpace;
    end = begin;
  }
  return 0;
}

struct Expression {
  std::string_view text;
  WordSplit split;
};
constexpr Expression kExpressions[] = {
    {R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)",
     WordSplit::kGpt2},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     WordSplit::kLlama3},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     WordSplit::kQwen2},
    // Another spelling of the first.
    {R"('(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)",
     WordSplit::kGpt2},
};

}  // namespace

std::optional<WordSplit> known_expression(std::string_view expression) {
  for (const Expression& known : kExpressions)
    if (known.text == expression) return known.split;
  return std::nullopt;
}

std::string_view expression_of(WordSplit split) {
  for (const Expression& known : kExpressions)
    if (known.split == split) return known.text;
  return kExpressions[0].text;
}

const char* word_end(const char* at, const char* end, WordSplit split) {
  switch (split) {
    case WordSplit::kLlama3: return marked_word_end<WordSplit::kLlama3>(at, end);
    case WordSplit::kQwen2: return marked_word_end<WordSplit::kQwen2>(at, end);
    case WordSplit::kSmolLm: return plain_word_end<WordSplit::kSmolLm>(at, end);
    case WordSplit::kGpt2: break;
  }
  return plain_word_end<WordSplit::kGpt2>(at, end);
}

size_t last_word_boundary(std::string_view text, WordSplit split) {
  switch (split) {
    case WordSplit::kLlama3: return last_boundary<WordSplit::kLlama3>(text);
    case WordSplit::kQwen2: return last_boundary<WordSplit::kQwen2>(text);
    case WordSplit::kSmolLm: return last_boundary<WordSplit::kSmolLm>(text);
    case WordSplit::kGpt2: break;
  }
  return last_boundary<WordSplit::kGpt2>(text);
}

}  // namespace fullbore
