#include "fullbore/ir/attributes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace fullbore {
namespace {

struct Printer {
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(int64_t value) const { return fmt::format("{}", value); }
  std::string operator()(double value) const { return double_text(value); }
  std::string operator()(const std::string& value) const { return quoted_text(value); }
  std::string operator()(DType value) const { return std::string(dtype_name(value)); }
  std::string operator()(const std::vector<int64_t>& value) const {
    return fmt::format("[{}]", fmt::join(value, ","));
  }
  std::string operator()(const std::vector<double>& value) const {
    std::string result = "f[";
    for (size_t i = 0; i < value.size(); ++i) result += (i ? "," : "") + double_text(value[i]);
    return result + "]";
  }
};

}  // namespace

std::string quoted_text(std::string_view text) {
  std::string result = "\"";
  for (char character : text) {
    if (character == '"' || character == '\\') result += '\\';
    if (character == '\n')
      result += "\\n";
    else
      result += character;
  }
  return result + '"';
}

std::string double_text(double value) {
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".enf") == std::string::npos) text += ".0";
  return text;
}

Attributes::Attributes(std::initializer_list<Entry> entries) {
  for (const Entry& entry : entries) set(entry.name, entry.value);
}

void Attributes::set(std::string_view name, Value value) {
  auto place = std::lower_bound(entries_.begin(), entries_.end(), name,
                                [](const Entry& e, std::string_view n) { return e.name < n; });
  if (place != entries_.end() && place->name == name)
    place->value = std::move(value);
  else
    entries_.insert(place, {std::string(name), std::move(value)});
}

const Attributes::Value* Attributes::find(std::string_view name) const {
  for (const Entry& entry : entries_)
    if (entry.name == name) return &entry.value;
  return nullptr;
}

std::string Attributes::text() const {
  if (entries_.empty()) return "";
  std::string result = "{";
  for (const auto& [name, value] : entries_) {
    if (result.size() > 1) result += ", ";
    result += name;
    result += '=';
    result += std::visit(Printer{}, value);
  }
  return result + "}";
}

}  // namespace fullbore
