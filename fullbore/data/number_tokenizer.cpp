#include "fullbore/data/number_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "fullbore/data/json_reader.h"

namespace fullbore {
namespace {

constexpr std::string_view kSpaces = " \t\r\n";

}  // namespace

size_t NumberTokenizer::append_tokens(std::string_view text, std::vector<int32_t>& ids) const {
  for (size_t at = 0;;) {
    at = text.find_first_not_of(kSpaces, at);
    if (at == std::string_view::npos) return text.size();
    const size_t end = std::min(text.find_first_of(kSpaces, at), text.size());
    int64_t number = -1;
    const auto [stop, error] = std::from_chars(text.data() + at, text.data() + end, number);
    const bool is_number = error == std::errc() && stop == text.data() + end && text[at] != '-';
    if (!is_number || number >= numbers_) return at;
    ids.push_back(static_cast<int32_t>(number));
    at = end;
  }
}

void NumberTokenizer::append_bytes(int32_t id, std::string& bytes) const {
  bytes += fmt::format("{} ", id);
}

size_t NumberTokenizer::last_cut(std::string_view text) const {
  const size_t space = text.find_last_of(kSpaces);
  return space == std::string_view::npos ? 0 : space + 1;
}

std::string NumberTokenizer::to_json() const {
  return fmt::format(R"({{"format":"{}","numbers":{},"version":1}})", kFormat, numbers_);
}

Result<NumberTokenizer> NumberTokenizer::from_json(std::string_view json,
                                                   const std::string& source) {
  JsonReader reader(json);
  std::string key;
  int64_t version = -1;
  int64_t numbers = 0;
  reader.begin_object();
  while (reader.next_key(key)) {
    if (key == "version")
      reader.read_integer(version);
    else if (key == "numbers")
      reader.read_integer(numbers);
    else
      reader.skip();
  }
  const auto refuse = [&](const std::string& reason) {
    return Failure{fmt::format("{}: not a tokenizer: {}", source, reason)};
  };
  if (!reader.finish()) return refuse(reader.error());
  if (version != 1) return refuse(fmt::format("version {} is not known; 1 is", version));
  if (numbers < 1 || numbers > kMostNumbers)
    return refuse(fmt::format("\"numbers\" is {}; 1 to {} was expected", numbers, kMostNumbers));
  return NumberTokenizer(numbers);
}

}  // namespace fullbore
