#include "fullbore/data/tokenizer_json.h"

#include <fmt/format.h>

#include "fullbore/data/json_reader.h"

namespace fullbore::hugging_face_json {

Result<Members> members_of(std::string_view json) {
  JsonReader reader(json);
  Members members;
  std::string key;
  std::string_view value;
  reader.begin_object();
  while (reader.next_key(key))
    if (reader.skip(value)) members[key] = value;
  if (!reader.finish()) return Failure{reader.error()};
  return members;
}

std::string_view value_of(const Members& members, std::string_view key) {
  const auto member = members.find(key);
  return member == members.end() ? "null" : member->second;
}

Status expect(const Members& members, const std::string& path, std::string_view key,
              std::initializer_list<std::string_view> accepted) {
  const std::string_view value = value_of(members, key);
  for (const std::string_view one : accepted)
    if (value == one) return success();
  return Failure{fmt::format("{}{} is {}, which is not supported; {} was expected", path, key,
                             value.substr(0, 60), *accepted.begin())};
}

}  // namespace fullbore::hugging_face_json
