#include "fullbore/train/sampling.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "fullbore/base/error.h"

namespace fullbore {
namespace {

std::vector<double> penalized(std::span<const float> logits, double penalty,
                              const std::vector<bool>& seen) {
  std::vector<double> result(logits.begin(), logits.end());
  if (penalty == 1) return result;
  for (size_t id = 0; id < std::min(seen.size(), result.size()); ++id)
    if (seen[id]) result[id] = result[id] > 0 ? result[id] / penalty : result[id] * penalty;
  return result;
}

// How many of the weights, which descend, reach the share `top_p` of their sum.
size_t nucleus(const std::vector<double>& weights, double top_p) {
  if (top_p >= 1) return weights.size();
  const double wanted = top_p * std::accumulate(weights.begin(), weights.end(), 0.0);
  double sum = 0;
  for (size_t i = 0; i < weights.size(); ++i)
    if ((sum += weights[i]) >= wanted) return i + 1;
  return weights.size();
}

}  // namespace

int32_t sample_token(std::span<const float> logits, const SamplingOptions& options,
                     PhiloxStream& draws, const std::vector<bool>& seen) {
  // Comparisons with NaN are no order: refuse it before anything is sorted.
  for (const float value : logits)
    if (std::isnan(value)) throw NumericalError("the model's logits are not a number");
  const std::vector<double> values = penalized(logits, options.repetition_penalty, seen);
  std::vector<int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const auto value = [&](int32_t id) { return values[static_cast<size_t>(id)]; };
  size_t kept = order.size();
  if (options.temperature == 0)
    kept = 1;
  else if (options.top_k > 0)
    kept = std::min(kept, static_cast<size_t>(options.top_k));
  std::partial_sort(
      order.begin(), order.begin() + static_cast<std::ptrdiff_t>(kept), order.end(),
      [&](int32_t a, int32_t b) { return value(a) > value(b) || (value(a) == value(b) && a < b); });
  const double largest = value(order.front());
  if (!std::isfinite(largest)) throw NumericalError("the model's logits are not finite");

  std::vector<double> weights(kept);
  for (size_t i = 0; i < kept; ++i)
    weights[i] = std::exp((value(order[i]) - largest) / options.temperature);
  if (kept > 1) kept = nucleus(weights, options.top_p);
  if (kept == 1) return order.front();
  weights.resize(kept);
  double left = draws.uniform() * std::accumulate(weights.begin(), weights.end(), 0.0);
  for (size_t i = 0; i < kept; ++i) {
    left -= weights[i];
    if (left < 0) return order[i];
  }
  return order.front();  // rounding: the draw was within an ulp of the total
}

}  // namespace fullbore
