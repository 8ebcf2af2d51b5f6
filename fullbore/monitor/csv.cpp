#include "fullbore/monitor/csv.h"

#include <fmt/format.h>

#include <algorithm>

#include "fullbore/monitor/json_line_reader.h"

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

Result<JsonLinesFile> read_json_lines(const std::string& path) {
  Result<JsonLineReader> opened = JsonLineReader::open(path);
  if (!opened.ok()) return Failure{opened.error()};
  JsonLineReader& reader = opened.value();
  JsonLinesFile file;
  for (;;) {
    const Result<bool> more = reader.next();
    if (!more.ok()) return Failure{more.error()};
    if (!more.value()) break;
    file.records.push_back(reader.record());
  }
  file.problems = reader.problems();
  file.problem_count = reader.problem_count();
  file.unchecked = reader.unchecked();
  file.lines = reader.lines();
  file.is_torn = reader.is_torn();
  return file;
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
