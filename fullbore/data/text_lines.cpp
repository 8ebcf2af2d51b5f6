#include "fullbore/data/text_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

namespace fullbore {
namespace {

constexpr size_t kPieceBytes = size_t{1} << 16;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

bool is_blank(char c) { return c == ' ' || c == '\t'; }
char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

}  // namespace

TextLines::TextLines(InputBytes bytes) : bytes_(std::move(bytes)), buffer_(kPieceBytes) {}

Result<bool> TextLines::next() {
  size_t searched = begin_;
  for (;;) {
    const char* const found =
        static_cast<const char*>(std::memchr(buffer_.data() + searched, '\n', end_ - searched));
    if (found != nullptr || (ended_ && begin_ < end_)) {
      const size_t stop = found != nullptr ? static_cast<size_t>(found - buffer_.data()) : end_;
      line_ = std::string_view(buffer_.data() + begin_, stop - begin_);
      begin_ = found != nullptr ? stop + 1 : end_;
      ++number_;
      if (line_.ends_with('\r')) line_.remove_suffix(1);
      if (number_ == 1 && line_.starts_with(kByteOrderMark))
        line_.remove_prefix(kByteOrderMark.size());
      return true;
    }
    if (ended_) return false;
    // Room: what is left moves to the front, and the buffer grows where that does not do.
    std::copy(buffer_.data() + begin_, buffer_.data() + end_, buffer_.data());
    end_ -= begin_;
    begin_ = 0;
    searched = end_;
    if (end_ == buffer_.size()) {
      if (end_ >= kMostBytes)
        return failure(number_ + 1, fmt::format("the line is longer than {} bytes", kMostBytes));
      buffer_.resize(2 * buffer_.size());
    }
    const Result<size_t> count = bytes_.read(buffer_.data() + end_, buffer_.size() - end_);
    if (!count.ok()) return Failure{count.error()};
    end_ += count.value();
    ended_ = count.value() == 0;
  }
}

Failure TextLines::failure(uint64_t line, std::string_view message) const {
  return Failure{fmt::format("{}:{}: {}", path(), line, message)};
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

std::string_view take_word(std::string_view& text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  size_t end = 0;
  while (end < text.size() && !is_blank(text[end])) ++end;
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(end);
  return word;
}

bool same_ignoring_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return lower(x) == lower(y); });
}

std::string quote_text(std::string_view text) {
  constexpr size_t kMost = 60;
  std::string result = "'";
  for (const char c : text.substr(0, kMost)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte >= 0x7F)
      result += fmt::format("\\x{:02x}", byte);
    else
      result += c;
  }
  return result + (text.size() > kMost ? "...'" : "'");
}

std::optional<double> parse_number(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value)) return {};
  return value;
}

}  // namespace fullbore
