#include "fullbore/train/weight_mapping.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "fullbore/base/error.h"
#include "fullbore/base/text.h"
#include "fullbore/train/config_yaml.h"

namespace fullbore {
namespace {

// Beyond these no file has anything; they keep products and loops small.
constexpr int64_t kMostExtent = int64_t{1} << 40;
constexpr size_t kMostAxes = 16;
constexpr size_t kMostName = 1024;
constexpr size_t kMostMatched = 4096;  // a longer name of a file matches no pattern

const std::vector<std::string> kSteps = {"slice", "reshape", "transpose"};

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    std::string part = text.substr(begin, end - begin);
    part.erase(0, part.find_first_not_of(' '));
    part.erase(part.find_last_not_of(' ') + 1);
    parts.push_back(std::move(part));
    begin = end + 1;
  }
  return parts;
}

class MappingReader {
 public:
  explicit MappingReader(std::string source) { mapping_.source = std::move(source); }

  WeightMapping read(std::string_view yaml) {
    for (const ConfigEntry& entry : read_config_yaml(yaml, mapping_.source).entries) {
      line_ = entry.line;
      if (!seen_.insert(entry.section + '.' + entry.name).second)
        refuse(fmt::format("'{}' is there twice", entry.name));
      if (entry.section == "file")
        read_file(entry);
      else if (entry.section == "tensors")
        read_rule(entry);
      else
        refuse(fmt::format("sections are file and tensors, not '{}'", entry.section));
    }
    line_ = 0;
    if (mapping_.weights.empty()) refuse("file.weights is missing: the safetensors file to read");
    return std::move(mapping_);
  }

 private:
  [[noreturn]] void refuse(const std::string& reason) const {
    throw UsageError(line_ > 0 ? fmt::format("{}:{}: {}", mapping_.source, line_, reason)
                               : fmt::format("{}: {}", mapping_.source, reason));
  }

  std::vector<std::string> texts(const ConfigEntry& entry) const {
    std::vector<std::string> found =
        entry.value.is_list ? entry.value.items : std::vector<std::string>{entry.value.text};
    if (found.empty()) refuse(fmt::format("'{}' is an empty list", entry.name));
    for (const std::string& each : found)
      if (each.empty() || each.size() > kMostName)
        refuse(fmt::format("a value of '{}' has {} characters; 1 to {} were expected", entry.name,
                           each.size(), kMostName));
    return found;
  }

  void read_file(const ConfigEntry& entry) {
    static const std::vector<std::string> kKeys = {"weights", "ignored"};
    if (entry.name == "weights")
      mapping_.weights = texts(entry);
    else if (entry.name == "ignored")
      mapping_.ignored = texts(entry);
    else
      refuse(fmt::format("unknown key 'file.{}'.{}", entry.name, did_you_mean(entry.name, kKeys)));
  }

  LayoutStep read_step(const std::string& text) const {
    const std::vector<std::string> words = split(text, ' ');
    const auto kind = std::ranges::find(kSteps, words.front());
    if (kind == kSteps.end())
      refuse(fmt::format("'{}' is no step: {}.{}", text, fmt::join(kSteps, ", "),
                         did_you_mean(words.front(), kSteps)));
    LayoutStep step{static_cast<LayoutStep::Kind>(kind - kSteps.begin()), {}};
    for (size_t i = 1; i < words.size(); ++i) {
      if (words[i].empty()) continue;
      int64_t number = 0;
      const char* const end = words[i].data() + words[i].size();
      const auto [stop, error] = std::from_chars(words[i].data(), end, number);
      if (error != std::errc() || stop != end || number < -1 || number > kMostExtent)
        refuse(fmt::format("'{}' of '{}' is no extent, axis or place", words[i], text));
      step.numbers.push_back(number);
    }
    if (step.numbers.empty() || step.numbers.size() > kMostAxes)
      refuse(fmt::format("'{}' has {} numbers; 1 to {} were expected", text, step.numbers.size(),
                         kMostAxes));
    if (step.kind == LayoutStep::Kind::slice && step.numbers.size() != 3)
      refuse(fmt::format("'{}': slice AXIS BEGIN END was expected", text));
    return step;
  }

  void read_rule(const ConfigEntry& entry) {
    if (entry.name.size() > kMostName)
      refuse(fmt::format("a name of {} characters; at most {} were expected", entry.name.size(),
                         kMostName));
    MappingRule rule{entry.name, {}, {}, entry.line};
    const auto stars = [](const std::string& text) { return std::ranges::count(text, '*'); };
    const std::vector<std::string> items = texts(entry);
    for (size_t i = 0; i < items.size(); ++i) {
      std::vector<std::string> parts = split(items[i], '|');
      std::vector<LayoutStep> steps;
      for (size_t part = 1; part < parts.size(); ++part) steps.push_back(read_step(parts[part]));
      if (!parts.front().empty()) {
        if (stars(parts.front()) > stars(entry.name))
          refuse(fmt::format("'{}' has more stars than '{}'", parts.front(), entry.name));
        rule.origins.push_back({std::move(parts.front()), std::move(steps)});
      } else if (i + 1 == items.size() && !rule.origins.empty()) {
        rule.steps = std::move(steps);
      } else {
        refuse(fmt::format("'{}' names no tensor; steps alone stand last in a list", items[i]));
      }
    }
    mapping_.rules.push_back(std::move(rule));
  }

  WeightMapping mapping_;
  std::set<std::string> seen_;
  int line_ = 0;
};

}  // namespace

std::string LayoutStep::text() const {
  return fmt::format("{} {}", kSteps[static_cast<size_t>(kind)], fmt::join(numbers, " "));
}

WeightMapping parse_weight_mapping(std::string_view yaml, const std::string& source) {
  return MappingReader(source).read(yaml);
}

std::optional<std::vector<std::string>> match_stars(std::string_view pattern,
                                                    std::string_view name) {
  if (name.size() > kMostMatched) return std::nullopt;
  // ends[i][j]: does pattern[i..] match name[j..]? From the back, so that no pattern takes long.
  const size_t columns = name.size() + 1;
  std::vector<bool> ends((pattern.size() + 1) * columns, false);
  ends[pattern.size() * columns + name.size()] = true;
  for (size_t i = pattern.size(); i-- > 0;)
    for (size_t j = columns; j-- > 0;)
      ends[i * columns + j] =
          pattern[i] == '*'
              ? ends[(i + 1) * columns + j] || (j < name.size() && ends[i * columns + j + 1])
              : j < name.size() && pattern[i] == name[j] && ends[(i + 1) * columns + j + 1];
  if (!ends[0]) return std::nullopt;
  std::vector<std::string> stars;
  for (size_t i = 0, j = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '*') {
      ++j;
      continue;
    }
    const size_t begin = j;
    while (!ends[(i + 1) * columns + j]) ++j;
    stars.emplace_back(name.substr(begin, j - begin));
  }
  return stars;
}

std::string with_stars(std::string_view pattern, const std::vector<std::string>& stars) {
  std::string text;
  size_t next = 0;
  for (const char each : pattern)
    if (each == '*')
      text += stars[next++];
    else
      text += each;
  return text;
}

Shape laid_out(const LayoutStep& step, const Shape& shape) {
  const std::vector<int64_t>& numbers = step.numbers;
  const auto refuse = [&](const std::string& reason) {
    throw UsageError(fmt::format("'{}' of {}: {}", step.text(), shape.text(), reason));
  };
  if (step.kind == LayoutStep::Kind::slice) {
    const int64_t axis = numbers[0] < 0 ? shape.rank() - 1 : numbers[0];
    if (axis < 0 || axis >= shape.rank()) refuse("there is no such axis");
    const int64_t extent = shape[static_cast<int>(axis)];
    const int64_t end = numbers[2] < 0 ? extent : numbers[2];
    if (numbers[1] < 0 || numbers[1] > end || end > extent) refuse("not within the axis");
    return shape.with(static_cast<int>(axis), end - numbers[1]);
  }
  if (step.kind == LayoutStep::Kind::transpose) {
    std::vector<int64_t> sorted = numbers, extents;
    std::ranges::sort(sorted);
    bool is_order = static_cast<int>(numbers.size()) == shape.rank();
    for (size_t i = 0; i < sorted.size(); ++i)
      is_order = is_order && sorted[i] == static_cast<int64_t>(i);
    if (!is_order) refuse("each axis must be named once");
    for (const int64_t axis : numbers) extents.push_back(shape[static_cast<int>(axis)]);
    return Shape(std::move(extents));
  }
  int64_t known = 1;
  size_t open = numbers.size();
  for (size_t i = 0; i < numbers.size(); ++i)
    if (numbers[i] < 0) {
      if (open < numbers.size()) refuse("one extent may be -1");
      open = i;
    } else if (__builtin_mul_overflow(known, numbers[i], &known)) {
      refuse("more elements than there are");
    }
  const int64_t elements = shape.elements();
  std::vector<int64_t> extents = numbers;
  if (open < numbers.size()) {
    if (known == 0 || elements % known != 0) refuse("the extents do not divide its elements");
    extents[open] = elements / known;
  } else if (known != elements) {
    refuse(fmt::format("{} elements do not become {}", elements, known));
  }
  return Shape(std::move(extents));
}

}  // namespace fullbore
