#include "fullbore/train/config_override.h"

#include <fmt/format.h>

#include "fullbore/base/error.h"

namespace fullbore {
namespace {

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(' ') + 1 - first);
}

bool is_between(std::string_view text, char open, char close) {
  return text.size() >= 2 && text.front() == open && text.back() == close;
}

std::string unquoted(std::string_view text) {
  const bool quoted = is_between(text, '"', '"') || is_between(text, '\'', '\'');
  return std::string(quoted ? text.substr(1, text.size() - 2) : text);
}

/// Parts between commas that stand outside of quotes and braces; without blanks around them.
std::vector<std::string_view> parts_of(std::string_view text) {
  std::vector<std::string_view> parts;
  char quote = 0;
  bool in_map = false;
  size_t begin = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    const char c = i < text.size() ? text[i] : ',';
    if (i == text.size() && (quote != 0 || in_map))
      throw UsageError(fmt::format("'{}' misses its closing {}", trimmed(text.substr(begin)),
                                   quote != 0 ? "quote" : "'}'"));
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (in_map) {
      in_map = c != '}';
    } else if (c == ',') {
      if (const std::string_view part = trimmed(text.substr(begin, i - begin)); !part.empty())
        parts.push_back(part);
      begin = i + 1;
    } else if (trimmed(text.substr(begin, i - begin)).empty()) {
      // Only a part's first character opens anything: "it's" is a word.
      if (c == '"' || c == '\'') quote = c;
      in_map = c == '{';
    }
  }
  return parts;
}

/// "key=value key=value" of "key: value, key: value".
std::string words_of(std::string_view map) {
  std::string words;
  for (const std::string_view part : parts_of(map)) {
    const size_t colon = part.find(':');
    const std::string key = unquoted(trimmed(part.substr(0, colon)));
    const std::string value =
        colon == std::string_view::npos ? "" : unquoted(trimmed(part.substr(colon + 1)));
    if (key.empty() || value.empty() || key.find_first_of(" =") != std::string::npos ||
        value.find(' ') != std::string::npos)
      throw UsageError(
          fmt::format("'{}' in '{{{}}}': 'key: value' was expected, without blanks in "
                      "either",
                      part, map));
    words += fmt::format("{}{}={}", words.empty() ? "" : " ", key, value);
  }
  return words;
}

}  // namespace

ConfigText read_override(const ConfigField& field, std::string_view text) {
  // A text may well begin with a bracket; only a list key makes it a list.
  if (!field.is_list() || !is_between(text, '[', ']')) return {std::string(text), false, false, {}};
  ConfigText value{std::string(text), false, true, {}};
  for (const std::string_view part : parts_of(text.substr(1, text.size() - 2))) {
    const bool is_map = field.maps && is_between(part, '{', '}');
    value.items.push_back(is_map ? words_of(part.substr(1, part.size() - 2)) : unquoted(part));
  }
  return value;
}

}  // namespace fullbore
