#include "fullbore/data/json_lines_reader.h"

#include <fmt/format.h>

#include <vector>

#include "fullbore/base/text.h"
#include "fullbore/data/json_reader.h"

namespace fullbore {

Status JsonLinesReader::append_document(std::string_view line, uint64_t line_number,
                                        std::string& text) {
  if (line.find_first_not_of(" \t\r\n") == std::string_view::npos) return success();
  JsonReader reader(line);
  bool found = false;
  JsonKind kind = reader.peek();
  const bool is_object = kind == JsonKind::kObject;
  if (is_object) reader.begin_object();
  while (is_object && reader.next_key(key_)) {
    if (key_ != field_) {
      reader.skip();
      continue;
    }
    found = true;
    kind = reader.peek();
    kind == JsonKind::kString ? reader.read_string(value_) : reader.skip();
  }
  if (!is_object) reader.skip();
  if (!reader.finish())
    return Failure{fmt::format("{}:{}: not JSON: {}", path_, line_number, reader.error())};
  if (!is_object)
    return Failure{fmt::format("{}:{}: the line is {}; an object with the field '{}' was expected",
                               path_, line_number, json_kind_name(kind), field_)};
  if (!found) return missing(line, line_number);
  if (kind != JsonKind::kString)
    return Failure{fmt::format("{}:{}: the field '{}' is {}; a text was expected", path_,
                               line_number, field_, json_kind_name(kind))};
  text += value_;
  return success();
}

Failure JsonLinesReader::missing(std::string_view line, uint64_t line_number) const {
  constexpr size_t kMostNames = 12;
  JsonReader reader(line);
  std::vector<std::string> names;
  std::string key;
  reader.begin_object();
  while (reader.next_key(key)) {
    if (names.size() < kMostNames) names.push_back(key.substr(0, 40));
    reader.skip();
  }
  return {fmt::format("{}:{}: there is no field '{}'.{} {} data.field chooses another", path_,
                      line_number, field_, did_you_mean(field_, names),
                      names.empty() ? "The object is empty;"
                                    : fmt::format("The fields are {};", fmt::join(names, ", ")))};
}

}  // namespace fullbore
