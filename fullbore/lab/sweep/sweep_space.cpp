#include "fullbore/lab/sweep/sweep_space.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "fullbore/base/error.h"
#include "fullbore/base/philox.h"
#include "fullbore/base/text.h"
#include "fullbore/train/config_schema.h"
#include "fullbore/train/config_yaml.h"
#include "fullbore/train/default_job.h"

namespace fullbore {
namespace {

constexpr int64_t kMostTrials = 100'000;

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  size_t begin = text.find_first_not_of(' ');
  while (begin != text.npos) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    begin = text.find_first_not_of(' ', end);
  }
  return words;
}

template <class Number>
bool read_number(const std::string& text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

/// Of a section `sweep` and of those that vary, entry by entry.
class SpaceReader {
 public:
  explicit SpaceReader(std::string source) : source_(std::move(source)) {}

  SweepSpace read(std::string_view yaml) {
    for (const ConfigEntry& entry : read_config_yaml(yaml, source_).entries) {
      line_ = entry.line;
      if (!seen_.insert(entry.section + '.' + entry.name).second)
        refuse(fmt::format("'{}.{}' is there twice", entry.section, entry.name));
      entry.section == "sweep" ? read_method(entry) : read_dimension(entry);
    }
    check();
    return std::move(space_);
  }

 private:
  [[noreturn]] void refuse(const std::string& reason) const {
    throw UsageError(line_ > 0 ? fmt::format("lab: {}:{}: {}", source_, line_, reason)
                               : fmt::format("lab: {}: {}", source_, reason));
  }

  std::string one(const ConfigEntry& entry) const {
    if (entry.value.is_list || entry.value.text.empty())
      refuse(fmt::format("sweep.{}: one value was expected", entry.name));
    return entry.value.text;
  }
  std::string one_of(const ConfigEntry& entry, const std::vector<std::string>& words) const {
    std::string text = one(entry);
    if (std::ranges::find(words, text) == words.end())
      refuse(fmt::format("sweep.{} is '{}'; one of {} was expected.{}", entry.name, text,
                         fmt::join(words, ", "), did_you_mean(text, words)));
    return text;
  }
  template <class Number>
  Number number(const ConfigEntry& entry, Number least, Number most) const {
    const std::string text = one(entry);
    Number value{};
    if (!read_number(text, value) || value < least || value > most)
      refuse(fmt::format("sweep.{} is '{}'; a whole number from {} to {} was expected", entry.name,
                         text, least, most));
    return value;
  }

  void read_method(const ConfigEntry& entry) {
    static const std::vector<std::string> names = {"config",  "settings",  "method",
                                                   "samples", "seed",      "metric",
                                                   "goal",    "reduction", "least_steps"};
    if (entry.name == "config") {
      space_.config = one(entry);
    } else if (entry.name == "settings") {
      space_.settings = entry.value.is_list ? entry.value.items : std::vector{one(entry)};
    } else if (entry.name == "method") {
      const std::string method = one_of(entry, {"grid", "random", "halving"});
      space_.method = method == "grid"     ? SweepSpace::Method::grid
                      : method == "random" ? SweepSpace::Method::random
                                           : SweepSpace::Method::halving;
    } else if (entry.name == "samples") {
      space_.samples = number<int64_t>(entry, 1, kMostTrials);
    } else if (entry.name == "seed") {
      space_.seed = number<uint64_t>(entry, 0, UINT64_MAX);
    } else if (entry.name == "metric") {
      space_.metric = one(entry);
    } else if (entry.name == "goal") {
      space_.higher_is_better = one_of(entry, {"lowest", "highest"}) == "highest";
    } else if (entry.name == "reduction") {
      space_.reduction = number<int64_t>(entry, 2, 100);
    } else if (entry.name == "least_steps") {
      space_.least_steps = number<int64_t>(entry, 1, 1'000'000'000);
    } else {
      refuse(fmt::format("there is no key sweep.{}.{} There are {}", entry.name,
                         did_you_mean(entry.name, names), fmt::join(names, ", ")));
    }
  }

  void read_dimension(const ConfigEntry& entry) {
    SweepDimension dimension;
    dimension.key = entry.section + '.' + entry.name;
    const ConfigField* const field = find_config_field(dimension.key);
    if (field == nullptr)
      refuse(fmt::format("there is no key {}.{}", dimension.key,
                         did_you_mean(dimension.key, config_keys())));
    if (dimension.key == "run.dir" || dimension.key == "run.name")
      refuse(dimension.key + " is the sweep's own: each run has a folder in its folder");
    if (entry.value.is_list) {
      dimension.choices = entry.value.items;
      if (dimension.choices.empty()) refuse(dimension.key + ": there is nothing to choose from");
      for (const std::string& choice : dimension.choices) check_value(*field, choice);
      if (std::set(dimension.choices.begin(), dimension.choices.end()).size() <
          dimension.choices.size())
        refuse(dimension.key + ": a value is there twice");
    } else {
      read_range(*field, entry.value.text, dimension);
    }
    space_.dimensions.push_back(std::move(dimension));
  }

  void read_range(const ConfigField& field, const std::string& text, SweepDimension& dimension) {
    const std::vector<std::string> words = words_of(text);
    const std::string kind = words.empty() ? "" : words[0];
    if (words.size() != 3 || !read_number(words[1], dimension.low) ||
        !read_number(words[2], dimension.high) ||
        (kind != "uniform" && kind != "log" && kind != "whole"))
      refuse(
          fmt::format("{} is '{}'; a list of values, \"uniform LOW HIGH\", \"log LOW HIGH\" or "
                      "\"whole LOW HIGH\" was expected",
                      dimension.key, text));
    dimension.kind = kind == "uniform" ? SweepDimension::Kind::uniform
                     : kind == "log"   ? SweepDimension::Kind::log
                                       : SweepDimension::Kind::whole;
    if (!std::isfinite(dimension.low) || !std::isfinite(dimension.high) ||
        dimension.low >= dimension.high)
      refuse(fmt::format("{}: {} to {} is no range", dimension.key, words[1], words[2]));
    if (kind == "log" && dimension.low <= 0)
      refuse(dimension.key + ": a range by its logarithm begins above 0");
    if (kind == "whole" && (dimension.low != std::nearbyint(dimension.low) ||
                            dimension.high != std::nearbyint(dimension.high) ||
                            dimension.low < -1e15 || dimension.high > 1e15))
      refuse(dimension.key + ": whole numbers were expected");
    for (const std::string& end : {words[1], words[2]}) check_value(field, end);
  }

  void check_value(const ConfigField& field, const std::string& text) const {
    Config scratch;
    if (field.is_list()) return;  // parsed with the whole setting, when the trial is planned
    if (!assign(field, scratch, {text, false, false, {}}))
      refuse(fmt::format("{} '{}'; {} was expected", field.key, text, field.expectation()));
  }

  void check() {
    line_ = 0;
    if (space_.config.empty() && default_job() != nullptr) space_.config = kDefaultJob;
    if (space_.config.empty()) refuse("sweep.config is missing: the job whose settings vary");
    if (space_.dimensions.empty())
      refuse("nothing varies: keys of the configuration with lists or ranges were expected");
    if (space_.method != SweepSpace::Method::grid) return;
    for (const SweepDimension& each : space_.dimensions)
      if (each.kind == SweepDimension::Kind::uniform || each.kind == SweepDimension::Kind::log)
        refuse(fmt::format("a grid has all values of {}: a list or \"whole LOW HIGH\" was expected",
                           each.key));
  }

  std::string source_;
  int line_ = 0;
  std::set<std::string> seen_;
  SweepSpace space_;
};

std::string value_at(const SweepDimension& dimension, double share) {
  switch (dimension.kind) {
    case SweepDimension::Kind::choice: {
      const auto count = static_cast<double>(dimension.choices.size());
      return dimension.choices[static_cast<size_t>(std::min(share * count, count - 1))];
    }
    case SweepDimension::Kind::whole: {
      const double count = dimension.high - dimension.low + 1;
      return fmt::format("{:.0f}",
                         std::min(dimension.low + std::floor(share * count), dimension.high));
    }
    case SweepDimension::Kind::uniform:
      return fmt::format("{:.6g}", dimension.low + (dimension.high - dimension.low) * share);
    case SweepDimension::Kind::log: break;
  }
  return fmt::format("{:.6g}", dimension.low * std::pow(dimension.high / dimension.low, share));
}

std::vector<std::string> all_values(const SweepDimension& dimension) {
  if (dimension.kind == SweepDimension::Kind::choice) return dimension.choices;
  std::vector<std::string> values;
  for (double value = dimension.low; value <= dimension.high && std::ssize(values) <= kMostTrials;
       ++value)
    values.push_back(fmt::format("{:.0f}", value));
  return values;
}

SweepTrials grid(const SweepSpace& space) {
  SweepTrials trials = {{}};
  for (const SweepDimension& dimension : space.dimensions) {
    const std::vector<std::string> values = all_values(dimension);
    if (std::ssize(trials) * std::ssize(values) > kMostTrials)
      throw UsageError(fmt::format("lab: the grid has more than {} trials", kMostTrials));
    SweepTrials longer;
    for (const auto& trial : trials)
      for (const std::string& value : values) {
        longer.push_back(trial);
        longer.back().push_back(value);
      }
    trials = std::move(longer);
  }
  return trials;
}

}  // namespace

SweepSpace parse_sweep_space(std::string_view yaml, const std::string& source) {
  return SpaceReader(source).read(yaml);
}

SweepTrials sweep_trials(const SweepSpace& space) {
  if (space.method == SweepSpace::Method::grid) return grid(space);
  SweepTrials trials;
  PhiloxStream draws(space.seed);
  for (int64_t i = 0; i < space.samples; ++i) {
    std::vector<std::string> values;
    for (const SweepDimension& dimension : space.dimensions)
      values.push_back(value_at(dimension, draws.uniform()));
    trials.push_back(std::move(values));
  }
  return trials;
}

std::vector<int64_t> sweep_rounds(const SweepSpace& space, int64_t most_steps) {
  std::vector<int64_t> steps = {most_steps};
  if (space.method != SweepSpace::Method::halving) return steps;
  int64_t trials = std::ssize(sweep_trials(space));
  while (trials > 1 && steps.back() / space.reduction >= space.least_steps) {
    steps.push_back(steps.back() / space.reduction);
    trials = (trials + space.reduction - 1) / space.reduction;
  }
  std::ranges::reverse(steps);
  return steps;
}

std::vector<std::string> trial_settings(const SweepSpace& space,
                                        const std::vector<std::string>& values) {
  std::vector<std::string> settings = space.settings;
  for (size_t i = 0; i < values.size(); ++i)
    settings.push_back(space.dimensions[i].key + '=' + values[i]);
  return settings;
}

}  // namespace fullbore
