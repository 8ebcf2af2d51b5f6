#include "fullbore/monitor/csv.h"

#include <fmt/format.h>

#include <algorithm>

#include "fullbore/base/files.h"

namespace fullbore {
namespace {

std::string field(const nlohmann::ordered_json& value) {
  if (value.is_null()) return "";
  const std::string text =
      value.is_string() ? value.get<std::string>()
                        : value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

}  // namespace

Result<std::vector<nlohmann::ordered_json>> read_json_lines(const std::string& path) {
  const Result<std::string> text = read_file(path);
  if (!text.ok()) return Failure{text.error()};
  std::vector<nlohmann::ordered_json> records;
  int line = 1;
  for (size_t begin = 0; begin < text.value().size(); ++line) {
    const size_t end = text.value().find('\n', begin);
    if (end == std::string::npos) break;
    auto record = nlohmann::ordered_json::parse(
        text.value().begin() + static_cast<std::ptrdiff_t>(begin),
        text.value().begin() + static_cast<std::ptrdiff_t>(end), nullptr, false);
    if (!record.is_object()) return Failure{fmt::format("{}:{}: no JSON object", path, line)};
    records.push_back(std::move(record));
    begin = end + 1;
  }
  return records;
}

std::string to_csv(std::span<const nlohmann::ordered_json> records) {
  std::vector<std::string> keys;
  for (const auto& record : records)
    for (const auto& [key, value] : record.items())
      if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
  std::string csv;
  const auto add_line = [&](const auto& field_of) {
    for (size_t i = 0; i < keys.size(); ++i) csv += (i > 0 ? "," : "") + field_of(keys[i]);
    csv += '\n';
  };
  add_line([](const std::string& key) { return field(key); });
  for (const auto& record : records)
    add_line([&](const std::string& key) {
      const auto found = record.find(key);
      return found == record.end() ? std::string() : field(*found);
    });
  return csv;
}

}  // namespace fullbore
