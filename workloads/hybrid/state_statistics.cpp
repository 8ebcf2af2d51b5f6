#include "workloads/hybrid/state_statistics.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <functional>
#include <limits>
#include <numbers>
#include <numeric>

namespace fullbore {
namespace {

double product(std::span<const double> a, std::span<const double> b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

// Turns both rows so that they are orthogonal; false if they are already.
bool rotate(std::span<double> a, std::span<double> b) {
  constexpr double kNear = 1e-12;
  const double aa = product(a, a), bb = product(b, b), ab = product(a, b);
  if (std::abs(ab) <= kNear * std::sqrt(aa * bb)) return false;
  const double zeta = (bb - aa) / (2 * ab);
  const double tangent = (zeta >= 0 ? 1 : -1) / (std::abs(zeta) + std::sqrt(1 + zeta * zeta));
  const double cosine = 1 / std::sqrt(1 + tangent * tangent), sine = cosine * tangent;
  for (size_t i = 0; i < a.size(); ++i) {
    const double before = a[i];
    a[i] = cosine * before - sine * b[i];
    b[i] = sine * before + cosine * b[i];
  }
  return true;
}

}  // namespace

double norm_of(std::span<const float> values) {
  double sum = 0;
  for (const float value : values) sum += static_cast<double>(value) * value;
  return std::sqrt(sum);
}

double cosine_of(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += static_cast<double>(a[i]) * b[i];
  const double norms = norm_of(a) * norm_of(b);
  return norms > 0 ? sum / norms : 0;
}

double variance_across(std::span<const std::span<const float>> rows) {
  const auto count = static_cast<double>(rows.size());
  const size_t width = rows.empty() ? 0 : rows.front().size();
  double sum = 0;
  for (size_t i = 0; i < width; ++i) {
    double mean = 0, squares = 0;
    for (const std::span<const float>& row : rows) mean += row[i] / count;
    for (const std::span<const float>& row : rows) squares += (row[i] - mean) * (row[i] - mean);
    sum += squares / count;
  }
  return width == 0 ? 0 : sum / static_cast<double>(width);
}

double share_beyond(std::span<const float> values, double bound) {
  if (values.empty()) return 0;
  const auto beyond =
      std::ranges::count_if(values, [&](float value) { return std::abs(value) > bound; });
  return static_cast<double>(beyond) / static_cast<double>(values.size());
}

double top_singular_share(std::span<const float> matrix, int64_t rows, int64_t columns,
                          int64_t count) {
  std::vector<double> values(matrix.begin(), matrix.end());
  const auto row = [&](int64_t i) {
    return std::span<double>(values).subspan(static_cast<size_t>(i * columns),
                                             static_cast<size_t>(columns));
  };
  constexpr int kMostSweeps = 60;
  bool turned = true;
  for (int sweep = 0; turned && sweep < kMostSweeps; ++sweep) {
    turned = false;
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = i + 1; j < rows; ++j) turned = rotate(row(i), row(j)) || turned;
  }
  std::vector<double> singular;
  for (int64_t i = 0; i < rows; ++i) singular.push_back(std::sqrt(product(row(i), row(i))));
  std::ranges::sort(singular, std::greater<>());
  const double all = std::accumulate(singular.begin(), singular.end(), 0.0);
  const auto most = singular.begin() + std::min<int64_t>(count, rows);
  return all > 0 ? std::accumulate(singular.begin(), most, 0.0) / all : 0;
}

double low_by_high_frequencies(std::span<const double> series) {
  const size_t count = series.size();
  if (count < 4) return 0;
  double low = 0, high = 0;
  for (size_t k = 1; k <= count / 2; ++k) {
    std::complex<double> sum = 0;
    for (size_t t = 0; t < count; ++t) {
      const double turns = static_cast<double>(k * t % count) / static_cast<double>(count);
      sum += series[t] * std::polar(1.0, -2 * std::numbers::pi * turns);
    }
    (4 * k < count ? low : high) += std::norm(sum);
  }
  return high > 0 ? low / high : std::numeric_limits<double>::infinity();
}

}  // namespace fullbore
