#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/ptx/module.h"

// The words of a text of PTX.
namespace fullbore::ptx {

struct Token {
  std::string_view text;
  int line = 0;
};

inline bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$' || c == '%' ||
         c == '.';
}

class Tokens {
 public:
  explicit Tokens(std::string_view text) {
    int line = 1;
    for (size_t i = 0; i < text.size();) {
      const char c = text[i];
      if (c == '\n') ++line;
      if (std::isspace(static_cast<unsigned char>(c)) != 0) {
        ++i;
      } else if (text.substr(i, 2) == "//") {
        i = std::min(text.find('\n', i), text.size());
      } else if (text.substr(i, 2) == "/*") {
        const size_t end = std::min(text.find("*/", i), text.size() - 2);
        line += static_cast<int>(std::ranges::count(text.substr(i, end - i), '\n'));
        i = end + 2;
      } else {
        size_t end = i + 1;
        if (c == '"')
          end = std::min(text.find('"', end), text.size() - 1) + 1;
        else if (is_word(c) || (c == '-' && end < text.size() && is_word(text[end])))
          while (end < text.size() && (is_word(text[end]) || text.substr(end, 2) == "::"))
            end += is_word(text[end]) ? 1 : 2;  // ".shared::cta"
        tokens_.push_back({text.substr(i, end - i), line});
        i = end;
      }
    }
    tokens_.push_back({"", line});
  }

  const Token& next() const { return tokens_[at_]; }
  std::string_view peek(size_t ahead = 0) const {
    return tokens_[std::min(at_ + ahead, tokens_.size() - 1)].text;
  }
  int line() const { return next().line; }
  bool at_end() const { return next().text.empty(); }
  std::string_view take() {
    const std::string_view text = next().text;
    if (!text.empty()) ++at_;
    return text;
  }
  bool take_if(std::string_view text) {
    if (peek() != text) return false;
    take();
    return true;
  }
  void expect(std::string_view text) {
    if (!take_if(text)) fail(fmt::format("'{}' was expected, not '{}'", text, peek()));
  }
  [[noreturn]] void fail(const std::string& what) const {
    throw Fault(fmt::format("PTX, line {}: {}", line(), what));
  }

 private:
  std::vector<Token> tokens_;
  size_t at_ = 0;
};

inline std::vector<std::string_view> split(std::string_view text, char by) {
  std::vector<std::string_view> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(by, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

inline std::optional<uint64_t> number_of(std::string_view text) {
  const auto hex = [&](size_t prefix) -> std::optional<uint64_t> {
    uint64_t bits = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data() + prefix, end, bits, 16);
    if (error != std::errc{} || stop != end) return std::nullopt;
    return bits;
  };
  const bool negative = text.starts_with('-');
  if (text.starts_with("0f") || text.starts_with("0F") || text.starts_with("0d") ||
      text.starts_with("0D"))
    return hex(2);
  while (text.ends_with('U')) text.remove_suffix(1);
  if (text.starts_with("0x") || text.starts_with("0X")) return hex(2);
  if (negative) text.remove_prefix(1);
  uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value, 10);
  if (text.empty() || error != std::errc{} || stop != end) return std::nullopt;
  return negative ? 0 - value : value;
}

}  // namespace fullbore::ptx
