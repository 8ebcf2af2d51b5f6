#include "fullbore/monitor/json_line_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "fullbore/base/excerpt.h"
#include "fullbore/base/json.h"
#include "fullbore/base/seal.h"

namespace fullbore {
namespace {

constexpr size_t kMostProblems = 20;
constexpr int64_t kSearched = 1000;  // lines missing or repeated in one place

/// The number that the line's checksum was made with; 0: none near `expected`.
int64_t number_of(std::string_view line, int64_t expected) {
  const auto is_it = [&](int64_t number) {
    return number > 0 && open_sealed_json(line, static_cast<uint64_t>(number)).seal == Seal::kWhole;
  };
  for (int64_t distance = 0; distance <= kSearched; ++distance)
    for (const int64_t number : {expected + distance, expected - distance})
      if (is_it(number)) return number;
  return 0;
}

}  // namespace

Result<JsonLineReader> JsonLineReader::open(const std::string& path, FileSystem& files) {
  Result<FileLines> lines = FileLines::open(path, files);
  if (!lines.ok()) return Failure{lines.error()};
  return JsonLineReader(std::move(lines).value());
}

void JsonLineReader::add_problem(const std::string& what) {
  if (problems_.size() < kMostProblems)
    problems_.push_back(fmt::format("{}:{}: {}", lines_.path(), lines_.number(), what));
  ++problem_count_;
}

Result<bool> JsonLineReader::next() {
  for (;;) {
    Result<bool> more = lines_.next();
    if (!more.ok() || !more.value()) return more;
    if (!lines_.is_ended()) {
      is_torn_ = true;
      return false;
    }
    if (take_line()) return true;
  }
}

bool JsonLineReader::take_line() {
  SealedJson sealed = open_sealed_json(lines_.line(), static_cast<uint64_t>(last_ + damaged_ + 1));
  Result<nlohmann::ordered_json> record = parse_ordered_json(sealed.text);
  const auto damaged = [&](const std::string& what) {
    ++damaged_;
    add_problem(what);
    return false;
  };
  if (!record.ok()) return damaged(fmt::format("no JSON object: {}", record.error()));
  if (!record.value().is_object()) return damaged("no JSON object");
  int64_t number = last_ + damaged_ + 1;
  if (sealed.seal == Seal::kNone) {
    if (last_ > unchecked_) return damaged("it has no checksum, as the lines before it have");
    ++unchecked_;
  } else if (sealed.seal == Seal::kBroken) {
    number = sealed.checksum.empty() ? 0 : number_of(lines_.line(), number);
    if (number == 0)
      return damaged(
          fmt::format("its checksum is not '{}': the line was changed", excerpt(sealed.checksum)));
  }
  if (!take_number(number)) return false;
  record_ = std::move(record).value();
  text_ = std::move(sealed.text);
  return true;
}

bool JsonLineReader::take_number(int64_t number) {
  if (number <= last_) {
    add_problem(fmt::format("line {} of what was written stands here again", number));
    return false;
  }
  const int64_t missing = number - last_ - 1 - damaged_;
  if (missing > 0)
    add_problem(missing == 1 ? "a line is missing before it"
                             : fmt::format("{} lines are missing before it", missing));
  last_ = number;
  damaged_ = 0;
  return true;
}

}  // namespace fullbore
