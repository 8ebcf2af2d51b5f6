#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "fullbore/data/utf8.h"
#include "fullbore/train/config_schema.h"

namespace fullbore {
namespace {

/// A text that YAML reads back as it stands, and not as nothing.
bool is_plain(const std::string& text) {
  const auto is_word = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '/' || c == '.';
  };
  return !text.empty() && is_word(text[0]) && text != "null" && text != "Null" && text != "NULL" &&
         std::all_of(text.begin(), text.end(),
                     [&](char c) { return is_word(c) || c == '-' || c == '+'; });
}

std::string text_yaml(const std::string& text) {
  return is_plain(text) ? text : nlohmann::json(text).dump();  // a JSON text is a YAML text
}

bool is_storable(const std::string& text) {
  return text.find('\0') == std::string::npos && decode_utf8(text, [](char32_t) {}) == text.size();
}

template <class Number>
bool parse_number(const std::string& text, const ConfigRange& range, Number& number) {
  Number parsed{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, parsed);
  if (error != std::errc() || stop != end || !range.contains(static_cast<double>(parsed)))
    return false;
  number = parsed;
  return true;
}

/// Stores a ConfigText in a member, by the member's type.
struct Assigner {
  const ConfigField& field;
  const ConfigText& value;

  bool operator()(int64_t* place) const {
    if (field.automatic && !value.is_list && value.text == "auto") {
      *place = 0;
      return true;
    }
    return !value.is_list && !value.quoted && parse_number(value.text, field.range, *place);
  }
  bool operator()(double* place) const {
    return !value.is_list && !value.quoted && parse_number(value.text, field.range, *place);
  }
  bool operator()(bool* place) const {
    if (value.is_list || value.quoted || (value.text != "true" && value.text != "false"))
      return false;
    *place = value.text == "true";
    return true;
  }
  bool operator()(std::string* place) const {
    const auto& choices = field.choices;
    // Of a kind of which there are several: "cuda:1", "card:RTX 4090". Which there are, its kind knows.
    const size_t end = field.key == "engine.device" ? value.text.find(':') : std::string::npos;
    const bool allowed = choices.empty() || std::find(choices.begin(), choices.end(),
                                                      value.text.substr(0, end)) != choices.end();
    if (value.is_list || !allowed || !is_storable(value.text)) return false;
    *place = value.text;
    return true;
  }
  bool operator()(std::vector<std::string>* place) const {
    const auto allowed = [this](const std::string& item) {
      const auto& choices = field.choices;
      return is_storable(item) &&
             (choices.empty() || std::find(choices.begin(), choices.end(), item) != choices.end());
    };
    if (!value.is_list && field.one_without_brackets && !value.text.empty() &&
        allowed(value.text)) {
      *place = {value.text};
      return true;
    }
    if (!value.is_list || !std::all_of(value.items.begin(), value.items.end(), allowed))
      return false;
    *place = value.items;
    return true;
  }
  bool operator()(std::vector<int64_t>* place) const {
    std::vector<int64_t> numbers(value.items.size());
    for (size_t i = 0; i < numbers.size(); ++i)
      if (!parse_number(value.items[i], field.range, numbers[i])) return false;
    if (value.is_list) *place = std::move(numbers);
    return value.is_list;
  }
};

struct Printer {
  std::string operator()(const int64_t* place) const { return fmt::format("{}", *place); }
  // The shortest form that reads back to the same double.
  std::string operator()(const double* place) const { return fmt::format("{}", *place); }
  std::string operator()(const bool* place) const { return *place ? "true" : "false"; }
  std::string operator()(const std::string* place) const { return text_yaml(*place); }
  std::string operator()(const std::vector<std::string>* place) const {
    std::vector<std::string> items;
    for (const std::string& item : *place) items.push_back(text_yaml(item));
    return fmt::format("[{}]", fmt::join(items, ", "));
  }
  std::string operator()(const std::vector<int64_t>* place) const {
    return fmt::format("[{}]", fmt::join(*place, ", "));
  }
};

bool is_automatic(const ConfigField& field, const ConfigPlace& place) {
  const auto* const number = std::get_if<int64_t*>(&place);
  return field.automatic && number && **number == 0;
}

}  // namespace

bool assign(const ConfigField& field, Config& config, const ConfigText& value) {
  return std::visit(Assigner{field, value}, field.place(config));
}

std::string value_json(const ConfigField& field, const Config& config) {
  Config copy = config;
  const ConfigPlace place = field.place(copy);
  if (const auto* const text = std::get_if<std::string*>(&place))
    return nlohmann::json(**text).dump();
  if (const auto* const list = std::get_if<std::vector<std::string>*>(&place))
    return nlohmann::json(**list).dump();
  if (is_automatic(field, place)) return "\"auto\"";
  return std::visit(Printer{}, place);  // numbers, lists of them and booleans are spelt alike
}

std::string value_yaml(const ConfigField& field, const Config& config) {
  Config copy = config;
  const ConfigPlace place = field.place(copy);
  return is_automatic(field, place) ? "auto" : std::visit(Printer{}, place);
}

}  // namespace fullbore
