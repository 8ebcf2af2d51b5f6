#include "fullbore/data/json_reader.h"

#include <fmt/format.h>

#include <charconv>
#include <cstring>

#include "fullbore/data/utf8.h"

namespace fullbore {

const char* json_kind_name(JsonKind kind) {
  switch (kind) {
    case JsonKind::kObject: return "an object";
    case JsonKind::kArray: return "a list";
    case JsonKind::kString: return "a text";
    case JsonKind::kNumber: return "a number";
    case JsonKind::kBoolean: return "true or false";
    case JsonKind::kNull: return "null";
    case JsonKind::kNothing: break;
  }
  return "nothing";
}

bool JsonReader::fail(const std::string& reason) {
  if (!failed_) error_ = fmt::format("byte {}: {}", at_, reason);
  failed_ = true;
  return false;
}

void JsonReader::skip_space() {
  while (at_ < text_.size() &&
         (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\r' || text_[at_] == '\t'))
    ++at_;
}

JsonKind JsonReader::peek() {
  if (failed_) return JsonKind::kNothing;
  skip_space();
  if (at_ == text_.size()) return JsonKind::kNothing;
  switch (text_[at_]) {
    case '{': return JsonKind::kObject;
    case '[': return JsonKind::kArray;
    case '"': return JsonKind::kString;
    case 't':
    case 'f': return JsonKind::kBoolean;
    case 'n': return JsonKind::kNull;
    default: break;
  }
  const char c = text_[at_];
  return c == '-' || (c >= '0' && c <= '9') ? JsonKind::kNumber : JsonKind::kNothing;
}

bool JsonReader::take(char wanted) {
  if (at_ == text_.size() || text_[at_] != wanted) return false;
  ++at_;
  return true;
}

bool JsonReader::begin(char open, JsonKind kind) {
  if (failed_) return false;
  skip_space();
  if (!take(open)) return fail(fmt::format("{} was expected", json_kind_name(kind)));
  if (fresh_.size() == kMostDepth) return fail(fmt::format("nested deeper than {}", kMostDepth));
  fresh_.push_back(true);
  return true;
}

bool JsonReader::begin_object() { return begin('{', JsonKind::kObject); }
bool JsonReader::begin_array() { return begin('[', JsonKind::kArray); }

bool JsonReader::next_member(char close) {
  if (failed_ || fresh_.empty()) return false;
  skip_space();
  if (take(close)) {
    fresh_.pop_back();
    return false;
  }
  if (!fresh_.back() && !take(',')) return fail(fmt::format("',' or '{}' was expected", close));
  fresh_.back() = false;
  skip_space();
  return true;
}

bool JsonReader::next_element() { return next_member(']'); }

bool JsonReader::next_key(std::string& key) {
  if (!next_member('}') || !read_text(&key)) return false;
  skip_space();
  return take(':') || fail("':' was expected");
}

bool JsonReader::read_string(std::string& value) { return read_text(&value); }

bool JsonReader::read_text(std::string* value) {
  if (failed_) return false;
  skip_space();
  if (!take('"')) return fail("a text was expected");
  if (value != nullptr) value->clear();
  for (;;) {
    const size_t begin = at_;
    while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\\' &&
           static_cast<unsigned char>(text_[at_]) >= 0x20)
      ++at_;
    const std::string_view plain = text_.substr(begin, at_ - begin);
    const size_t valid = decode_utf8(plain, [](char32_t) {});
    if (valid < plain.size()) {
      at_ = begin + valid;
      return fail("not UTF-8: " + describe_utf8_error(plain, valid));
    }
    if (value != nullptr) value->append(plain);
    if (at_ == text_.size()) return fail("the text has no end");
    if (take('"')) return true;
    if (!take('\\')) return fail("a control character stands in a text");
    if (!read_escape(value)) return false;
  }
}

bool JsonReader::read_escape(std::string* value) {
  constexpr std::string_view kNames = "\"\\/bfnrt";
  constexpr std::string_view kValues = "\"\\/\b\f\n\r\t";
  if (at_ == text_.size()) return fail("the text has no end");
  const char name = text_[at_++];
  if (const size_t known = kNames.find(name); known != std::string_view::npos) {
    if (value != nullptr) value->push_back(kValues[known]);
    return true;
  }
  if (name != 'u') return fail("unknown escape in a text");
  uint32_t code = 0;
  if (!read_code_unit(code)) return false;
  if (code >= 0xDC00 && code <= 0xDFFF) return fail("half of a surrogate pair, no character");
  if (code >= 0xD800 && code <= 0xDBFF) {
    uint32_t low = 0;
    if (!take('\\') || !take('u')) return fail("half of a surrogate pair, no character");
    if (!read_code_unit(low)) return false;
    if (low < 0xDC00 || low > 0xDFFF) return fail("half of a surrogate pair, no character");
    code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
  }
  if (value != nullptr) append_utf8(*value, code);
  return true;
}

bool JsonReader::read_code_unit(uint32_t& unit) {
  const std::string_view digits = text_.substr(at_, 4);
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), unit, /*base=*/16);
  if (digits.size() < 4 || error != std::errc() || end != digits.data() + 4)
    return fail("four hexadecimal digits were expected");
  at_ += 4;
  return true;
}

bool JsonReader::skip_number(bool& whole) {
  const auto digits = [&] {
    const size_t begin = at_;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') ++at_;
    return at_ - begin;
  };
  whole = true;
  take('-');
  const bool leading_zero = at_ < text_.size() && text_[at_] == '0';
  const size_t count = digits();
  if (count == 0 || (leading_zero && count > 1)) return fail("malformed number");
  if (take('.')) {
    whole = false;
    if (digits() == 0) return fail("malformed number");
  }
  if (take('e') || take('E')) {
    whole = false;
    if (!take('+')) take('-');
    if (digits() == 0) return fail("malformed number");
  }
  return true;
}

bool JsonReader::read_integer(int64_t& value) {
  if (failed_) return false;
  if (peek() != JsonKind::kNumber) return fail("a number was expected");
  const size_t begin = at_;
  bool whole = false;
  if (!skip_number(whole)) return false;
  const std::string_view number = text_.substr(begin, at_ - begin);
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  if (whole && error == std::errc() && end == number.data() + number.size()) return true;
  at_ = begin;
  return fail("a whole number of 64 bits was expected");
}

bool JsonReader::skip_word(std::string_view word) {
  if (text_.substr(at_, word.size()) != word) return fail("a value was expected");
  at_ += word.size();
  return true;
}

bool JsonReader::read_boolean(bool& value) {
  if (failed_) return false;
  if (peek() != JsonKind::kBoolean) return fail("true or false was expected");
  value = text_[at_] == 't';
  return skip_word(value ? "true" : "false");
}

bool JsonReader::skip_scalar() {
  bool whole = false;
  switch (peek()) {
    case JsonKind::kString: return read_text(nullptr);
    case JsonKind::kNumber: return skip_number(whole);
    case JsonKind::kBoolean: return skip_word(text_[at_] == 't' ? "true" : "false");
    case JsonKind::kNull: return skip_word("null");
    default: return failed_ ? false : fail("a value was expected");
  }
}

bool JsonReader::skip() {
  std::vector<bool> objects;  // those begun here: true for an object, false for an array
  std::string key;
  do {
    const JsonKind kind = peek();
    if (kind == JsonKind::kObject || kind == JsonKind::kArray) {
      const bool is_object = kind == JsonKind::kObject;
      if (!(is_object ? begin_object() : begin_array())) return false;
      objects.push_back(is_object);
    } else if (!skip_scalar()) {
      return false;
    }
    while (!objects.empty() && !(objects.back() ? next_key(key) : next_element())) {
      if (failed_) return false;
      objects.pop_back();
    }
  } while (!objects.empty());
  return true;
}

bool JsonReader::skip(std::string_view& json) {
  skip_space();
  const size_t begin = at_;
  if (!skip()) return false;
  json = text_.substr(begin, at_ - begin);
  return true;
}

bool JsonReader::finish() {
  if (failed_) return false;
  skip_space();
  if (!fresh_.empty() || at_ == 0) return fail("the text ends too early");
  return at_ == text_.size() || fail("nothing was expected to follow");
}

}  // namespace fullbore
