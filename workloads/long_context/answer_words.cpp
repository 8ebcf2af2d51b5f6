#include "workloads/long_context/answer_words.h"

#include "fullbore/data/utf8.h"

namespace fullbore::long_context {
namespace {

constexpr std::string_view kSpaces = " \t\r\n\f\v";

bool is_space(char c) { return kSpaces.find(c) != std::string_view::npos; }

template <class Divides>
std::vector<std::string> split(std::string_view text, const Divides& divides) {
  std::vector<std::string> parts;
  for (size_t at = 0; at < text.size();) {
    if (divides(text[at])) {
      ++at;
      continue;
    }
    const size_t begin = at;
    while (at < text.size() && !divides(text[at])) ++at;
    parts.emplace_back(text.substr(begin, at - begin));
  }
  return parts;
}

}  // namespace

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return lower;
}

bool is_ascii_punctuation(char c) {
  constexpr std::string_view kMarks = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~";
  return kMarks.find(c) != std::string_view::npos;
}

std::string_view without_spaces_around(std::string_view text) {
  const size_t begin = text.find_first_not_of(kSpaces);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpaces) + 1 - begin);
}

std::vector<std::string> split_words(std::string_view text) { return split(text, is_space); }

std::vector<std::string> plain_words(std::string_view text) {
  const std::string lower = lower_case(text);
  return split(lower, [](char c) {
    return !(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') &&
           static_cast<unsigned char>(c) < 0x80;
  });
}

std::vector<std::string> split_lines(std::string_view text) {
  return split(text, [](char c) { return c == '\n' || c == '\r'; });
}

std::vector<std::string> split_characters(std::string_view text) {
  std::vector<std::string> characters;
  while (!text.empty()) {
    const size_t taken = decode_utf8(
        text, [&](char32_t code_point) { append_utf8(characters.emplace_back(), code_point); });
    text.remove_prefix(taken);
    if (text.empty()) break;
    characters.emplace_back(text.substr(0, 1));
    text.remove_prefix(1);
  }
  return characters;
}

}  // namespace fullbore::long_context
