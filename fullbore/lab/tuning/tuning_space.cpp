#include "fullbore/lab/tuning/tuning_space.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "fullbore/base/error.h"

namespace fullbore {
namespace {

constexpr std::string_view kBatchSize = "train.batch_size";
constexpr std::string_view kThreads = "engine.threads";
/// Microbatches one after another, and side by side.
constexpr std::array<std::string_view, 2> kParts = {"engine.accumulate",
                                                    "engine.parallel_microbatches"};
constexpr std::string_view kMostParts = "1,2,4,8";
/// Chosen for other reasons than the time of a step: a promise about bits that somebody relies on or does not need, and how
/// long a start may take.
constexpr std::array<std::string_view, 2> kNotForSpeed = {"engine.row_invariant", "engine.compile"};

/// Powers of two below the number of processors, and that.
std::string thread_counts(int processors) {
  std::vector<int> counts;
  for (int count = 1; count < processors; count *= 2) counts.push_back(count);
  counts.push_back(processors);
  return fmt::format("{}", fmt::join(counts, ","));
}

/// Does the key's own list of values, or a ladder of ours, say which ones to try?
std::string ladder_of(std::string_view key, const TuningScope& scope) {
  if (key == kThreads) return thread_counts(scope.processors);
  if (std::ranges::find(kParts, key) != kParts.end()) return std::string(kMostParts);
  return "";
}

std::vector<Switch> values_of(std::string_view text, const Config& config,
                              const TuningScope& scope) {
  const std::string ladder = ladder_of(text, scope);
  std::vector<Switch> choices = ladder.empty()
                                    ? parse_switch(text, config)
                                    : parse_switch(fmt::format("{}={}", text, ladder), config);
  // 0 threads are all that there are.
  if (config.engine.threads == 0)
    std::erase_if(choices, [&](const Switch& each) {
      return each.key == kThreads && each.value == std::to_string(scope.processors);
    });
  return choices;
}

void add(std::vector<Coordinate>& space, const Switch& choice) {
  const std::string name = choice.key.empty() ? "passes" : choice.key;
  auto found = std::ranges::find(space, name, &Coordinate::name);
  if (found == space.end()) found = space.insert(space.end(), {name, {}});
  if (std::ranges::find(found->choices, choice) == found->choices.end())
    found->choices.push_back(choice);
}

}  // namespace

Numbers numbers_of(const Switch& choice) {
  if (choice.key == kBatchSize) return Numbers::another_batch;
  // What nobody has said this of is judged by its quality: precision, how moments and weights are stored, a model's own keys.
  constexpr std::array<std::string_view, 11> kKept = {"data.workers",
                                                      "data.prefetch",
                                                      "engine.threads",
                                                      "engine.compile",
                                                      "engine.attention",
                                                      "engine.recompute",
                                                      "engine.row_invariant",
                                                      "engine.offload",
                                                      "engine.cublaslt",
                                                      kParts[0],
                                                      kParts[1]};
  return choice.key.empty() || std::ranges::find(kKept, choice.key) != kKept.end()
             ? Numbers::kept
             : Numbers::changed;
}

std::vector<Coordinate> tuning_space(const Config& config, const TuningScope& scope) {
  std::vector<Coordinate> space;
  if (!scope.batch_sizes.empty())
    for (const Switch& each :
         parse_switch(fmt::format("{}={}", kBatchSize, scope.batch_sizes), config))
      add(space, each);
  for (const std::string& text : scope.switches)
    for (const Switch& each : values_of(text, config, scope)) add(space, each);
  if (!scope.switches.empty()) return space;
  const std::vector<Switch> known = known_switches(config);
  for (const Switch& each : known)
    if (!each.key.empty() && std::ranges::find(kNotForSpeed, each.key) == kNotForSpeed.end())
      add(space, each);
  for (const std::string_view key : {kThreads, kParts[1], kParts[0]})
    if (key != kThreads || scope.processors > 1)
      for (const Switch& each : values_of(key, config, scope)) add(space, each);
  for (const Switch& each : known)
    if (each.key.empty()) add(space, each);
  return space;
}

TuningPoint with(TuningPoint point, const Switch& choice) {
  std::erase_if(point, [&](const Switch& each) {
    return choice.key.empty() ? each.name == choice.name : each.key == choice.key;
  });
  point.push_back(choice);
  return point;
}

TuningPoint that_keep_numbers(const TuningPoint& point) {
  TuningPoint kept;
  std::ranges::copy_if(point, std::back_inserter(kept),
                       [](const Switch& each) { return numbers_of(each) != Numbers::changed; });
  return kept;
}

std::vector<std::string> point_settings(const TuningPoint& point, const Config& config) {
  std::vector<std::string> disabled = config.engine.disabled_passes;
  std::vector<std::string> settings;
  for (const Switch& each : point) {
    if (each.key.empty())
      disabled.push_back(each.name);
    else
      settings.push_back(fmt::format("{}={}", each.key, each.value));
  }
  if (disabled != config.engine.disabled_passes)
    settings.push_back(fmt::format("engine.disabled_passes=[{}]", fmt::join(disabled, ", ")));
  return settings;
}

std::string choice_name(const Switch& choice) {
  return choice.key.empty() ? "without " + choice.name : choice.name;
}

}  // namespace fullbore
