#include "fullbore/app/parameter_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "fullbore/optim/parameter_groups.h"
#include "fullbore/runtime/state.h"

namespace fullbore {
namespace {

struct FirstValues {
  double mean = 0;
  double deviation = 0;
  double least = 0;
  double most = 0;
};

FirstValues summary(std::span<const float> values) {
  FirstValues made;
  if (values.empty()) return made;
  const auto [least, most] = std::ranges::minmax(values);
  const auto count = static_cast<double>(values.size());
  for (const float value : values) made.mean += value / count;
  for (const float value : values)
    made.deviation += (value - made.mean) * (value - made.mean) / count;
  return {made.mean, std::sqrt(made.deviation), least, most};
}

FirstValues first_values(const StateEntry& entry, const Initializer& initializer, uint64_t seed) {
  std::vector<float> values(static_cast<size_t>(entry.type.elements()));
  initialize(initializer, {DType::f32, entry.type.shape}, seed, entry.name, values.data());
  return summary(values);
}

}  // namespace

std::string parameters_text(const TracedStep& step, const OptimizerOptions& optimizer,
                            uint64_t seed) {
  std::vector<StateEntry> entries = state_entries(step.graph);
  std::erase_if(entries, [](const StateEntry& entry) {
    return entry.role != Role::parameter && entry.role != Role::frozen;
  });
  std::ranges::stable_sort(entries, {},
                           [](const StateEntry& entry) { return entry.role == Role::frozen; });
  std::vector<std::string> names;  // of trained ones, which come first
  size_t longest = 9;
  for (const StateEntry& entry : entries) {
    if (entry.role == Role::parameter) names.push_back(entry.name);
    longest = std::max(longest, entry.name.size());
  }
  const std::vector<int> groups = assign_groups(names, optimizer.groups);
  std::string text =
      fmt::format("{:<{}}  {:<14}{:>10}{:>12}{:>12}{:>12}{:>12}{:>7}{:>7}\n", "parameter", longest,
                  "shape", "elements", "mean", "deviation", "least", "most", "rate", "decay");
  for (size_t i = 0; i < entries.size(); ++i) {
    const StateEntry& entry = entries[i];
    const FirstValues first = first_values(entry, step.initializers.at(entry.name), seed);
    if (entry.role == Role::frozen) {
      text += fmt::format("{:<{}}  {:<14}{:>10}{:>12.5g}{:>12.5g}{:>12.5g}{:>12.5g}{:>14}\n",
                          entry.name, longest, entry.type.shape.text(), entry.type.elements(),
                          first.mean, first.deviation, first.least, first.most, "frozen");
      continue;
    }
    const bool decays = optimizer.decays_all || entry.type.shape.rank() >= 2;
    const ParameterGroup group =
        groups[i] < 0 ? ParameterGroup{} : optimizer.groups[static_cast<size_t>(groups[i])];
    text +=
        fmt::format("{:<{}}  {:<14}{:>10}{:>12.5g}{:>12.5g}{:>12.5g}{:>12.5g}{:>7.4g}{:>7.4g}\n",
                    entry.name, longest, entry.type.shape.text(), entry.type.elements(), first.mean,
                    first.deviation, first.least, first.most, group.learning_rate_multiplier,
                    group.weight_decay.value_or(decays ? optimizer.weight_decay : 0.0));
  }
  return text;
}

}  // namespace fullbore
