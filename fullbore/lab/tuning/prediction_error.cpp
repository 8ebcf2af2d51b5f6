#include "fullbore/lab/tuning/prediction_error.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "fullbore/monitor/sample_statistics.h"

namespace fullbore {
namespace {

bool is_known(double value) { return std::isfinite(value) && value > 0; }

std::vector<double> ranks(const std::vector<double>& values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, [&](size_t i) { return values[i]; });
  std::vector<double> result(values.size());
  for (size_t begin = 0; begin < order.size();) {
    size_t end = begin;
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    for (size_t i = begin; i < end; ++i)
      result[order[i]] = static_cast<double>(begin + end - 1) / 2;
    begin = end;
  }
  return result;
}

double correlation(const std::vector<double>& a, const std::vector<double>& b) {
  const auto mean = [](const std::vector<double>& values) {
    return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  };
  const double mean_a = mean(a), mean_b = mean(b);
  double both = 0, of_a = 0, of_b = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    both += (a[i] - mean_a) * (b[i] - mean_b);
    of_a += (a[i] - mean_a) * (a[i] - mean_a);
    of_b += (b[i] - mean_b) * (b[i] - mean_b);
  }
  return of_a > 0 && of_b > 0 ? both / std::sqrt(of_a * of_b) : PredictionError::kUnknown;
}

}  // namespace

PredictionError prediction_error(std::span<const Prediction> predictions) {
  PredictionError error;
  std::vector<double> predicted, measured, errors;
  for (const Prediction& each : predictions) {
    if (!is_known(each.predicted) || !is_known(each.measured)) continue;
    predicted.push_back(each.predicted);
    measured.push_back(each.measured);
    errors.push_back(std::abs(each.predicted / each.measured - 1));
    if (errors.size() > 1 && errors.back() <= error.worst) continue;
    error.worst = errors.back();
    error.worst_name = each.name;
  }
  error.count = errors.size();
  if (errors.empty()) return error;
  error.median = median(errors);
  constexpr size_t kFewest = 3;
  if (errors.size() >= kFewest)
    error.rank_correlation = correlation(ranks(predicted), ranks(measured));
  return error;
}

}  // namespace fullbore
