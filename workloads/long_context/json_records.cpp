#include "workloads/long_context/json_records.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "fullbore/base/text.h"
#include "fullbore/data/json_reader.h"

namespace fullbore::long_context {
namespace {

constexpr std::string_view kSpaces = " \t\r\n";
constexpr size_t kMostBytes = TextLines::kMostBytes;

/// A text, or a number as it is written.
bool read_element(JsonReader& reader, std::string& text) {
  if (reader.peek() != JsonKind::kNumber) return reader.read_string(text);
  std::string_view number;
  if (!reader.skip(number)) return false;
  text = number;
  return true;
}

}  // namespace

Result<JsonRecords> JsonRecords::open(const std::string& path) {
  Result<InputBytes> bytes = InputBytes::open(path);
  if (!bytes) return Failure{bytes.error()};
  return JsonRecords(TextLines(std::move(bytes).value()));
}

Result<bool> JsonRecords::next(std::string_view& json) {
  if (is_list_) return next_in_list(json);
  for (;;) {
    Result<bool> more = lines_.next();
    if (!more || !more.value()) return more;
    const size_t begin = lines_.line().find_first_not_of(kSpaces);
    if (begin == std::string_view::npos) continue;
    line_ = lines_.number();
    if (!begun_ && lines_.line()[begin] == '[') {
      is_list_ = begun_ = true;
      rest_ = lines_.line().substr(begin + 1);
      return next_in_list(json);
    }
    begun_ = true;
    json = lines_.line();
    return true;
  }
}

// Only braces and the ends of texts are looked at: whoever parses the object sees what else is wrong.
bool JsonRecords::take_from_line() {
  for (size_t i = 0; i < rest_.size(); ++i) {
    const char c = rest_[i];
    if (escaped_) {
      escaped_ = false;
    } else if (in_text_) {
      escaped_ = c == '\\';
      in_text_ = c != '"';
    } else if (c == '"') {
      in_text_ = true;
    } else if (c == '{' || c == '[') {
      ++depth_;
    } else if ((c == '}' || c == ']') && --depth_ == 0) {
      object_ += rest_.substr(0, i + 1);
      rest_.remove_prefix(i + 1);
      return true;
    }
  }
  object_ += rest_;
  object_ += '\n';
  rest_ = {};
  return false;
}

Result<bool> JsonRecords::next_in_list(std::string_view& json) {
  object_.clear();
  depth_ = 0;
  in_text_ = escaped_ = false;
  for (;;) {
    if (depth_ == 0) {
      const size_t begin = rest_.find_first_not_of(" \t\r\n,");
      rest_.remove_prefix(std::min(begin, rest_.size()));
      if (!rest_.empty()) {
        line_ = lines_.number();
        if (list_ended_) return failure("nothing was expected behind the list");
        if (rest_.front() == ']') {
          list_ended_ = true;
          rest_.remove_prefix(1);
          continue;
        }
        if (rest_.front() != '{') return failure("an object was expected in the list");
      }
    }
    if (!rest_.empty() && take_from_line()) {
      json = object_;
      return true;
    }
    if (object_.size() > kMostBytes)
      return failure(
          fmt::format("an object of more than {}", bytes_text(static_cast<double>(kMostBytes))));
    Result<bool> more = lines_.next();
    if (!more) return more;
    if (!more.value()) {
      if (depth_ > 0 || !list_ended_) return failure("the list has no end");
      return false;
    }
    rest_ = lines_.line();
  }
}

JsonRecord::JsonRecord(std::string_view json) {
  JsonReader reader(json);
  const JsonKind kind = reader.peek();
  if (kind != JsonKind::kObject && kind != JsonKind::kNothing) {
    fail(fmt::format("{}; an object was expected", json_kind_name(kind)));
    return;
  }
  std::string key;
  reader.begin_object();
  while (reader.next_key(key)) {
    std::string_view value;
    if (!reader.skip(value)) break;
    if (!fields_.emplace(key, value).second)
      fail(fmt::format("the field '{}' is there twice", key));
  }
  if (!reader.finish()) error_ = "not JSON: " + reader.error();
}

void JsonRecord::fail(std::string message) {
  if (ok()) error_ = std::move(message);
}

const std::string_view* JsonRecord::find(const std::string& name) {
  if (!ok()) return nullptr;
  if (const auto found = fields_.find(name); found != fields_.end()) return &found->second;
  std::vector<std::string> names;
  for (const auto& [each, json] : fields_)
    if (names.size() < 16) names.push_back(each.substr(0, 40));
  fail(fmt::format("there is no field '{}'.{} {}", name, did_you_mean(name, names),
                   names.empty() ? "The object is empty"
                                 : fmt::format("The fields are {}", fmt::join(names, ", "))));
  return nullptr;
}

void JsonRecord::read(const std::string& name, std::string& text) {
  const std::string_view* json = find(name);
  if (json == nullptr) return;
  JsonReader reader(*json);
  const JsonKind kind = reader.peek();
  if (kind != JsonKind::kString)
    return fail(
        fmt::format("the field '{}' is {}; a text was expected", name, json_kind_name(kind)));
  reader.read_string(text);
}

void JsonRecord::read(const std::string& name, std::vector<std::string>& texts) {
  const std::string_view* json = find(name);
  if (json == nullptr) return;
  texts.clear();
  JsonReader reader(*json);
  const JsonKind kind = reader.peek();
  if (kind != JsonKind::kArray) {
    if (kind != JsonKind::kString && kind != JsonKind::kNumber)
      return fail(fmt::format("the field '{}' is {}; a text or a list of texts was expected", name,
                              json_kind_name(kind)));
    read_element(reader, texts.emplace_back());
    return;
  }
  reader.begin_array();
  while (reader.next_element()) {
    const JsonKind element = reader.peek();
    if (!read_element(reader, texts.emplace_back()))
      return fail(fmt::format("the field '{}' holds {}; texts were expected", name,
                              json_kind_name(element)));
  }
}

void JsonRecord::read_if_any(const std::string& name, std::vector<std::string>& texts) {
  texts.clear();
  if (!ok()) return;
  const auto found = fields_.find(name);
  if (found == fields_.end() || found->second == "null") return;
  read(name, texts);
}

void JsonRecord::read(const std::string& name, std::string& text,
                      const std::vector<std::string>& choices) {
  read(name, text);
  if (ok() && std::ranges::find(choices, text) == choices.end())
    fail(fmt::format("the field '{}' is '{}'; one of {} was expected.{}", name, text.substr(0, 40),
                     fmt::join(choices, ", "), did_you_mean(text.substr(0, 40), choices)));
}

}  // namespace fullbore::long_context
