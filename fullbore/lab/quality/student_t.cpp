#include "fullbore/lab/quality/student_t.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "fullbore/base/check.h"

namespace fullbore {
namespace {

/// DLMF 8.17.22, by the modified method of Lentz; converges fast for x < (a + 1) / (a + b + 2).
double beta_fraction(double a, double b, double x) {
  constexpr int kMostTerms = 10'000;
  constexpr double kLeast = 1e-300, kEnough = 1e-15;
  const auto away_from_zero = [](double value) {
    return std::abs(value) < kLeast ? kLeast : value;
  };
  double c = 1;
  double d = 1 / away_from_zero(1 - (a + b) * x / (a + 1));
  double fraction = d;
  for (int m = 1; m <= kMostTerms; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / away_from_zero(1 + even * d);
    c = away_from_zero(1 + even / c);
    fraction *= d * c;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / away_from_zero(1 + odd * d);
    c = away_from_zero(1 + odd / c);
    fraction *= d * c;
    if (std::abs(d * c - 1) < kEnough) break;
  }
  return fraction;
}

double normal_upper_tail(double z) { return std::erfc(z / std::sqrt(2.0)) / 2; }

}  // namespace

double incomplete_beta(double a, double b, double x) {
  FB_CHECK(a > 0 && b > 0 && x >= 0 && x <= 1, "a {}, b {}, x {}", a, b, x);
  if (x == 0 || x == 1) return x;
  const double front = std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) +
                                a * std::log(x) + b * std::log1p(-x));
  if (x < (a + 1) / (a + b + 2)) return front * beta_fraction(a, b, x) / a;
  return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

double student_upper_tail(double t, double freedom) {
  if (std::isnan(t)) return t;
  if (std::isinf(t)) return t > 0 ? 0 : 1;
  const double square = t * t;
  // Of the two arguments the one that is small is computed, not left over.
  const double both = square < freedom
                          ? 1 - incomplete_beta(0.5, freedom / 2, square / (freedom + square))
                          : incomplete_beta(freedom / 2, 0.5, freedom / (freedom + square));
  return t > 0 ? both / 2 : 1 - both / 2;
}

double student_critical(double tail, double freedom) {
  FB_CHECK(tail > 0 && tail < 1 && freedom > 0, "tail {}, {} degrees of freedom", tail, freedom);
  if (tail > 0.5) return -student_critical(1 - tail, freedom);
  double low = 0, high = 1;
  while (student_upper_tail(high, freedom) > tail) {
    low = high;
    high *= 2;
  }
  constexpr int kHalvings = 80;
  for (int i = 0; i < kHalvings && high - low > 1e-15 * high; ++i) {
    const double middle = low + (high - low) / 2;
    (student_upper_tail(middle, freedom) > tail ? low : high) = middle;
  }
  return low + (high - low) / 2;
}

// The chance given u = sqrt(chi^2 / freedom), which is normal, times the density of u, by Simpson's rule.
double noncentral_upper_tail(double t, double freedom, double shift) {
  FB_CHECK(freedom > 0, "{} degrees of freedom", freedom);
  if (std::isinf(shift)) return shift > 0 ? 1 : 0;
  constexpr int kIntervals = 600;  // even
  constexpr double kDeviations = 12;
  const double reach = kDeviations / std::sqrt(2 * freedom);
  const double from = std::max(0.0, 1 - reach), to = 1 + reach;
  const double width = (to - from) / kIntervals;
  const double constant =
      std::log(2.0) + freedom / 2 * std::log(freedom / 2) - std::lgamma(freedom / 2);
  double sum = 0;
  for (int i = 0; i <= kIntervals; ++i) {
    const double u = from + i * width;
    double density = 0;
    if (u > 0)
      density = std::exp(constant + (freedom - 1) * std::log(u) - freedom * u * u / 2);
    else if (freedom == 1)
      density = std::exp(constant);
    const double factor = i == 0 || i == kIntervals ? 1 : 2 + 2 * (i % 2);
    sum += factor * density * normal_upper_tail(t * u - shift);
  }
  return std::clamp(sum * width / 3, 0.0, 1.0);
}

}  // namespace fullbore
