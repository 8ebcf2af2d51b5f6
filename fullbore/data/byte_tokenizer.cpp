#include "fullbore/data/byte_tokenizer.h"

#include <fmt/format.h>

#include "fullbore/data/json_reader.h"

namespace fullbore {

size_t ByteTokenizer::append_tokens(std::string_view text, std::vector<int32_t>& ids) const {
  const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
  ids.insert(ids.end(), bytes, bytes + text.size());
  return text.size();
}

void ByteTokenizer::append_bytes(int32_t id, std::string& bytes) const {
  bytes.push_back(static_cast<char>(id));
}

std::string ByteTokenizer::to_json() const {
  return fmt::format(R"({{"format":"{}","version":1}})", kFormat);
}

Result<ByteTokenizer> ByteTokenizer::from_json(std::string_view json, const std::string& source) {
  JsonReader reader(json);
  std::string key;
  int64_t version = -1;
  reader.begin_object();
  while (reader.next_key(key)) {
    if (key == "version")
      reader.read_integer(version);
    else
      reader.skip();
  }
  if (!reader.finish())
    return Failure{fmt::format("{}: not a tokenizer: {}", source, reader.error())};
  if (version != 1)
    return Failure{
        fmt::format("{}: not a tokenizer: version {} is not known; 1 is", source, version)};
  return ByteTokenizer();
}

}  // namespace fullbore
