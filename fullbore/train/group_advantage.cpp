#include "fullbore/train/group_advantage.h"

#include <cmath>
#include <numeric>

#include "fullbore/base/check.h"

namespace fullbore {
namespace {

constexpr double kEpsilon = 1e-4;

double mean_of(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double deviation(std::span<const double> values, double mean, double divisor) {
  double sum = 0;
  for (const double value : values) sum += (value - mean) * (value - mean);
  return divisor > 0 ? std::sqrt(sum / divisor) : 0;
}

}  // namespace

std::optional<Advantage> parse_advantage(std::string_view name) {
  if (name == "centred") return Advantage::centred;
  if (name == "sample") return Advantage::sample;
  if (name == "population") return Advantage::population;
  if (name == "batch") return Advantage::batch;
  if (name == "leave_one") return Advantage::leave_one;
  return std::nullopt;
}

bool is_constant(std::span<const double> rewards) {
  return deviation(rewards, mean_of(rewards), static_cast<double>(rewards.size())) <= kEqualRewards;
}

std::vector<float> group_advantages(std::span<const double> rewards, size_t size, Advantage kind) {
  FB_CHECK(size > 0 && rewards.size() % size == 0, "{} rewards in groups of {}", rewards.size(),
           size);
  const auto count = static_cast<double>(size);
  std::vector<double> centred(rewards.size(), 0.0);
  std::vector<double> scale(rewards.size() / size, 1.0);
  for (size_t group = 0; group < scale.size(); ++group) {
    const std::span<const double> own = rewards.subspan(group * size, size);
    if (is_constant(own)) continue;
    const double mean = mean_of(own);
    for (size_t i = 0; i < size; ++i) centred[group * size + i] = own[i] - mean;
    if (kind == Advantage::sample)
      scale[group] = 1 / (deviation(own, mean, count - 1) + kEpsilon);
    else if (kind == Advantage::population)
      scale[group] = 1 / (deviation(own, mean, count) + kEpsilon);
    else if (kind == Advantage::leave_one)
      scale[group] = count / (count - 1);
  }
  double common = 1;
  if (kind == Advantage::batch)
    common = 1 / (deviation(centred, 0, static_cast<double>(rewards.size()) - 1) + kEpsilon);
  std::vector<float> result;
  for (size_t i = 0; i < rewards.size(); ++i)
    result.push_back(static_cast<float>(centred[i] * scale[i / size] * common));
  return result;
}

}  // namespace fullbore
