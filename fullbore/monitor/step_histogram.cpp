#include "fullbore/monitor/step_histogram.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace fullbore {
namespace {

constexpr int kPerOctave = 32;
constexpr int kFirst = -20 * kPerOctave, kLast = 20 * kPerOctave - 1;
constexpr int64_t kMostSteps = int64_t{1} << 53;

}  // namespace

void StepHistogram::add(double seconds) {
  if (!std::isfinite(seconds) || seconds <= 0) return;
  const double place = std::floor(kPerOctave * std::log2(seconds));
  ++bins_[static_cast<int>(std::clamp<double>(place, kFirst, kLast))];
  ++steps_;
  seconds_ += seconds;
}

void StepHistogram::merge(const StepHistogram& other) {
  for (const auto& [bin, count] : other.bins_) bins_[bin] += count;
  steps_ += other.steps_;
  seconds_ += other.seconds_;
}

double StepHistogram::quantile(double share) const {
  if (steps_ == 0) return std::numeric_limits<double>::quiet_NaN();
  const double rank = std::max(1.0, std::ceil(share * static_cast<double>(steps_)));
  int64_t below = 0;
  int last = 0;
  for (const auto& [bin, count] : bins_) {
    last = bin;
    below += count;
    if (static_cast<double>(below) >= rank) break;
  }
  return std::exp2((last + 0.5) / kPerOctave);
}

nlohmann::ordered_json StepHistogram::to_json() const {
  nlohmann::ordered_json bins = nlohmann::ordered_json::array();
  for (const auto& [bin, count] : bins_) bins.push_back({bin, count});
  return {{"steps", steps_}, {"seconds", seconds_}, {"bins", std::move(bins)}};
}

Result<StepHistogram> StepHistogram::from_json(const nlohmann::json& json) {
  const auto refuse = [](const std::string& what) {
    return Failure{fmt::format("step_times: {}", what)};
  };
  if (!json.is_object() || !json.contains("bins") || !json["bins"].is_array() ||
      !json.contains("seconds") || !json["seconds"].is_number())
    return refuse("an object with 'bins' and 'seconds' was expected");
  StepHistogram histogram;
  for (const nlohmann::json& each : json["bins"]) {
    if (!each.is_array() || each.size() != 2 || !each[0].is_number_integer() ||
        !each[1].is_number_integer())
      return refuse("bins are pairs of whole numbers");
    const auto bin = each[0].get<int64_t>(), count = each[1].get<int64_t>();
    if (bin < kFirst || bin > kLast || count <= 0 || count > kMostSteps - histogram.steps_)
      return refuse(fmt::format("there is no bin [{}, {}]", bin, count));
    histogram.bins_[static_cast<int>(bin)] += count;
    histogram.steps_ += count;
  }
  histogram.seconds_ = json["seconds"].get<double>();
  if (!std::isfinite(histogram.seconds_) || histogram.seconds_ < 0)
    return refuse("'seconds' is no time");
  return histogram;
}

}  // namespace fullbore
