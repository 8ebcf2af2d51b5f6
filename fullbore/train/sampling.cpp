#include "fullbore/train/sampling.h"

#include <algorithm>
#include <cmath>
#include <limits>
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

/// Tokens by what is made of their logits: the likelier first, of equals the lower id.
struct Likelier {
  const std::vector<double>& values;
  bool operator()(int32_t a, int32_t b) const {
    const double x = values[static_cast<size_t>(a)], y = values[static_cast<size_t>(b)];
    return x > y || (x == y && a < b);
  }
};

// The k likeliest, in no order.
void keep_likeliest(std::vector<int32_t>& ids, int64_t k, const Likelier& likelier) {
  if (k <= 0 || static_cast<size_t>(k) >= ids.size()) return;
  std::nth_element(ids.begin(), ids.begin() + k, ids.end(), likelier);
  ids.resize(static_cast<size_t>(k));
}

// The fewest of them whose weights sum to top_p of all.
void keep_nucleus(std::vector<int32_t>& ids, double top_p, const std::vector<double>& weights,
                  const Likelier& likelier) {
  if (top_p >= 1) return;
  double total = 0;
  for (const int32_t id : ids) total += weights[static_cast<size_t>(id)];
  // A heap has the likelier ones on top, and is sorted no further than they reach.
  const auto less_likely = [&](int32_t a, int32_t b) { return likelier(b, a); };
  std::ranges::make_heap(ids, less_likely);
  auto end = ids.end();
  for (double sum = 0; end != ids.begin();) {
    std::pop_heap(ids.begin(), end--, less_likely);
    sum += weights[static_cast<size_t>(*end)];
    if (sum >= top_p * total) break;
  }
  ids.erase(ids.begin(), end);
}

double log_sum(std::span<const float> logits, double largest) {
  double sum = 0;
  for (const float value : logits) sum += std::exp(static_cast<double>(value) - largest);
  return largest + std::log(sum);
}

}  // namespace

SampledToken sample_token(std::span<const float> logits, const SamplingOptions& options,
                          double uniform, const std::vector<bool>& seen,
                          const std::vector<bool>& allowed) {
  // Comparisons with NaN are no order: refuse it before anything is compared.
  for (const float value : logits)
    if (std::isnan(value)) throw NumericalError("the model's logits are not a number");
  const double likeliest = *std::ranges::max_element(logits);
  if (!std::isfinite(likeliest)) throw NumericalError("the model's logits are not finite");
  std::vector<double> values = penalized(logits, options.repetition_penalty, seen);
  for (size_t id = 0; id < std::min(allowed.size(), values.size()); ++id)
    if (!allowed[id]) values[id] = -std::numeric_limits<double>::infinity();
  const auto first = static_cast<int32_t>(std::ranges::max_element(values) - values.begin());
  if (!std::isfinite(values[static_cast<size_t>(first)]))
    throw NumericalError("no token that has a probability is allowed");
  const auto drawn = [&](int32_t token, double log_probability) {
    const double raw = logits[static_cast<size_t>(token)] - log_sum(logits, likeliest);
    return SampledToken{token, static_cast<float>(raw), static_cast<float>(log_probability)};
  };
  if (options.temperature == 0) return drawn(first, 0);

  const double largest = values[static_cast<size_t>(first)];
  std::vector<double> weights(values.size());
  for (size_t id = 0; id < values.size(); ++id)
    weights[id] = std::exp((values[id] - largest) / options.temperature);
  std::vector<int32_t> kept(values.size());
  std::iota(kept.begin(), kept.end(), 0);
  keep_likeliest(kept, options.top_k, {values});
  keep_nucleus(kept, options.top_p, weights, {values});
  if (kept.size() < values.size()) std::ranges::sort(kept);

  double total = 0;
  for (const int32_t id : kept) total += weights[static_cast<size_t>(id)];
  double sum = 0;
  int32_t token = first;  // rounding: the draw was within an ulp of the total
  for (const int32_t id : kept)
    if ((sum += weights[static_cast<size_t>(id)]) > uniform * total) {
      token = id;
      break;
    }
  return drawn(token, std::log(weights[static_cast<size_t>(token)] / total));
}

int32_t sample_token(std::span<const float> logits, const SamplingOptions& options,
                     PhiloxStream& draws, const std::vector<bool>& seen) {
  return sample_token(logits, options, draws.uniform(), seen).token;
}

}  // namespace fullbore
