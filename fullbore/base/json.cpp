#include "fullbore/base/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "fullbore/base/excerpt.h"
#include "fullbore/base/text.h"

namespace fullbore {
namespace {

Failure failure_at(std::string_view text, size_t byte, std::string_view reason) {
  byte = std::min(byte, text.size());
  const auto lines =
      std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(byte), '\n');
  return Failure{fmt::format("line {}, byte {}: {}", lines + 1, byte, reason)};
}

/// Looks at brackets, commas and the ends of texts alone. Up to the first error of the text it sees what a parser
/// sees, and a parser goes no further.
std::optional<Failure> passed_limit(std::string_view text, const JsonLimits& limits) {
  if (text.size() > limits.bytes)
    return Failure{fmt::format("{} bytes; at most {} are read", text.size(), limits.bytes)};
  size_t depth = 0;
  size_t values = 1;
  bool in_text = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    // Parsers that look for one take it for the end, and what follows goes unseen.
    if (c == '\0') return failure_at(text, i, "a zero byte, which JSON has none of");
    if (in_text) {
      if (c == '\\' && i + 1 < text.size() && text[i + 1] != '\0') ++i;
      in_text = c != '"';
    } else if (c == '"') {
      in_text = true;
    } else if (c == '[' || c == '{') {
      ++values;
      if (++depth > limits.depth)
        return failure_at(text, i,
                          fmt::format("lists and objects are nested deeper than {}", limits.depth));
    } else if (c == ']' || c == '}') {
      if (depth > 0) --depth;
    } else if (c == ',') {
      ++values;
    }
    if (values > limits.values)
      return failure_at(text, i, fmt::format("more than {} values", limits.values));
  }
  return std::nullopt;
}

template <class Json>
Result<Json> parse(std::string_view text, const JsonLimits& limits) {
  if (std::optional<Failure> failure = passed_limit(text, limits)) return *failure;
  try {
    return Json::parse(text);
  } catch (const nlohmann::json::parse_error& error) {
    const size_t byte = error.byte == 0 ? 0 : error.byte - 1;  // it counts the offending one too
    if (byte >= text.size()) return failure_at(text, text.size(), "the JSON text ends too early");
    const size_t begin = byte < 20 ? 0 : byte - 20;
    return failure_at(
        text, byte,
        fmt::format("malformed JSON after '{}' at '{}'", excerpt(text.substr(begin, byte - begin)),
                    excerpt(text.substr(byte, 20))));
  } catch (const nlohmann::json::exception&) {
    return Failure{"a number is too large for a double"};
  }
}

}  // namespace

Result<nlohmann::json> parse_json(std::string_view text, const JsonLimits& limits) {
  return parse<nlohmann::json>(text, limits);
}

Result<nlohmann::ordered_json> parse_ordered_json(std::string_view text, const JsonLimits& limits) {
  return parse<nlohmann::ordered_json>(text, limits);
}

Status read_json_events(std::string_view text, nlohmann::json_sax<nlohmann::json>& reader,
                        const JsonLimits& limits) {
  if (std::optional<Failure> failure = passed_limit(text, limits)) return *failure;
  if (!nlohmann::json::sax_parse(text, &reader)) return Failure{""};
  return success();
}

std::string json_excerpt(const nlohmann::json& value) {
  constexpr size_t kMostBytes = 120;
  constexpr size_t kMostElements = 16;
  const auto structured = [](const nlohmann::json& each) { return each.is_structured(); };
  if (value.is_structured() &&
      (value.size() > kMostElements || std::any_of(value.begin(), value.end(), structured)))
    return fmt::format("{} of {}", value.is_array() ? "a list" : "an object", value.size());
  return excerpt(value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), kMostBytes);
}

}  // namespace fullbore
