#include "workloads/long_context/accuracy.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "fullbore/base/check.h"

namespace fullbore::long_context {

Interval wilson_interval(int64_t successes, int64_t trials) {
  if (trials == 0) return {0, 1};
  constexpr double kZ = 1.959963984540054;
  const auto n = static_cast<double>(trials);
  const double share = static_cast<double>(successes) / n;
  const double shrink = 1 + kZ * kZ / n;
  const double centre = (share + kZ * kZ / (2 * n)) / shrink;
  const double half = kZ * std::sqrt(share * (1 - share) / n + kZ * kZ / (4 * n * n)) / shrink;
  return {successes == 0 ? 0 : std::max(0.0, centre - half),
          successes == trials ? 1 : std::min(1.0, centre + half)};
}

UsableLength usable_length(std::span<const LengthAccuracy> accuracies, double threshold,
                           Interpolation interpolation) {
  FB_CHECK(!accuracies.empty(), "no accuracies");
  if (accuracies.front().accuracy < threshold) return {};
  for (size_t i = 1; i < accuracies.size(); ++i) {
    const LengthAccuracy& above = accuracies[i - 1];
    const LengthAccuracy& below = accuracies[i];
    FB_CHECK(above.length > 0 && above.length < below.length, "lengths do not ascend");
    if (below.accuracy >= threshold) continue;
    const double share = (above.accuracy - threshold) / (above.accuracy - below.accuracy);
    const auto from = static_cast<double>(above.length);
    const auto to = static_cast<double>(below.length);
    if (interpolation == Interpolation::linear) return {from + share * (to - from), false};
    return {std::exp(std::log(from) + share * (std::log(to) - std::log(from))), false};
  }
  return {static_cast<double>(accuracies.back().length), true};
}

RetrievalFlags retrieval_flags(std::span<const DepthAccuracy> cells, int64_t claimed_length,
                               bool multi_needle) {
  constexpr double kSag = 0.1;
  struct Length {
    Mean all;
    Mean ends;
    Mean middle;
  };
  std::map<int64_t, Length> lengths;
  Mean whole;
  for (const DepthAccuracy& cell : cells) {
    Length& length = lengths[cell.length];
    length.all.add(cell.accuracy);
    whole.add(cell.accuracy);
    const bool middle = cell.depth >= 0.25 && cell.depth <= 0.75;
    (middle ? length.middle : length.ends).add(cell.accuracy);
  }
  RetrievalFlags flags;
  for (const auto& [length, means] : lengths) {
    if (length == claimed_length && means.all.value() < 0.8)
      flags.below_at_claimed = LengthAccuracy{length, means.all.value()};
    if (means.ends.count == 0 || means.middle.count == 0) continue;
    // The difference of two shares is rounded: ten points exactly are no more than ten.
    if (means.ends.value() - means.middle.value() > kSag + 1e-12)
      flags.lost_in_the_middle.push_back({length, means.ends.value(), means.middle.value()});
  }
  flags.multi_needle_below_half = multi_needle && whole.count > 0 && whole.value() < 0.5;
  return flags;
}

std::string_view gate_name(Gate gate) {
  switch (gate) {
    case Gate::not_measured: return "not measured";
    case Gate::failed: return "failed";
    case Gate::passed: return "passed";
  }
  return "";
}

Gate needle_gate(std::span<const LengthAccuracy> accuracies) {
  const LengthAccuracy* at = nullptr;
  for (const LengthAccuracy& each : accuracies)
    if (each.length >= 16000 && each.length <= 16384 && (at == nullptr || each.length > at->length))
      at = &each;
  if (at == nullptr) return Gate::not_measured;
  return at->accuracy > 0.8 ? Gate::passed : Gate::failed;
}

Gate longbench_gate(double mean_f1, int64_t items) {
  if (items == 0) return Gate::not_measured;
  return mean_f1 > 0.6 ? Gate::passed : Gate::failed;
}

}  // namespace fullbore::long_context
