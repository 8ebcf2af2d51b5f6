#include "fullbore/optim/parameter_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "fullbore/base/error.h"
#include "fullbore/base/text.h"

namespace fullbore {
namespace {

const std::vector<std::string> kKeys = {"match", "weight_decay", "learning_rate_multiplier",
                                        "algorithm"};

constexpr double kMost = 1e15;  // as of the configuration's own: products of two are finite in f32

double parse_not_negative(std::string_view key, std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value >= 0 && value <= kMost))
    throw UsageError(fmt::format("{} is '{}'; a number in [0, {:g}] was expected", key,
                                 text.substr(0, 60), kMost));
  return value;
}

void set(ParameterGroup& group, std::string_view key, std::string_view value) {
  if (key == "match") {
    group.match = value;
  } else if (key == "weight_decay") {
    group.weight_decay = parse_not_negative(key, value);
  } else if (key == "learning_rate_multiplier") {
    group.learning_rate_multiplier = parse_not_negative(key, value);
  } else if (key == "algorithm") {
    if (value != "adamw" && value != "muon")
      throw UsageError(
          fmt::format("algorithm is '{}'; adamw or muon was expected", value.substr(0, 60)));
    group.algorithm = value;
  } else {
    throw UsageError(fmt::format("unknown key '{}'.{} The keys of a group are {}.",
                                 key.substr(0, 60), did_you_mean(key, kKeys),
                                 fmt::join(kKeys, ", ")));
  }
}

}  // namespace

ParameterGroup parse_parameter_group(std::string_view text) {
  ParameterGroup group;
  std::vector<std::string_view> seen;
  for (size_t begin = text.find_first_not_of(' '); begin < text.size();) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    const std::string_view word = text.substr(begin, end - begin);
    const size_t equals = word.find('=');
    if (equals == std::string_view::npos)
      throw UsageError(fmt::format("'{}' is no key=value", word.substr(0, 60)));
    const std::string_view key = word.substr(0, equals);
    if (std::find(seen.begin(), seen.end(), key) != seen.end())
      throw UsageError(fmt::format("{} occurs twice", key));
    set(group, key, word.substr(equals + 1));
    seen.push_back(key);
    begin = text.find_first_not_of(' ', end);
  }
  if (group.match.empty())
    throw UsageError("match is missing: a pattern of parameter names such as *.bias");
  return group;
}

std::vector<int> assign_groups(std::span<const std::string> names,
                               std::span<const ParameterGroup> groups) {
  std::vector<int> assigned(names.size(), -1);
  for (size_t g = 0; g < groups.size(); ++g) {
    bool applies = false;
    const std::string* nearest = nullptr;
    size_t least = SIZE_MAX;
    for (size_t i = 0; i < names.size(); ++i) {
      const size_t edits = pattern_distance(groups[g].match, names[i]);
      if (edits < least) {
        least = edits;
        nearest = &names[i];
      }
      if (edits > 0 || assigned[i] >= 0) continue;
      assigned[i] = static_cast<int>(g);
      applies = true;
    }
    if (applies) continue;
    if (least == 0)
      throw UsageError(
          fmt::format("optim.groups: earlier groups take every parameter that '{}' matches; the "
                      "first match counts",
                      groups[g].match));
    throw UsageError(fmt::format("optim.groups: '{}' matches no parameter.{}", groups[g].match,
                                 nearest ? fmt::format(" The nearest is '{}'.", *nearest) : ""));
  }
  return assigned;
}

}  // namespace fullbore
