#include "fullbore/lab/ablation/effects.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "fullbore/lab/quality/equivalence.h"
#include "fullbore/lab/quality/student_t.h"

namespace fullbore {
namespace {

constexpr double kAlpha = 0.05;
constexpr double kPower = 0.8;

double mean(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

bool is_complete(const std::vector<double>& row) {
  return std::ranges::all_of(row, [](double value) { return std::isfinite(value); });
}

/// The figures of every second seed, from seed `first` on.
std::vector<double> every_second(std::span<const double> row, size_t first) {
  std::vector<double> result;
  for (size_t seed = first; seed < row.size(); seed += 2) result.push_back(row[seed]);
  return result;
}

/// Sum of squares that neither arms nor seeds explain, and how many degrees of freedom it has.
struct Residual {
  double squares = 0;
  double freedom = 0;
};
Residual residual(const SeedTable& rows) {
  const size_t seeds = rows.front().size();
  std::vector<double> of_seed(seeds, 0);
  double overall = 0;
  for (const std::vector<double>& row : rows) {
    overall += mean(row) / static_cast<double>(rows.size());
    for (size_t seed = 0; seed < seeds; ++seed)
      of_seed[seed] += row[seed] / static_cast<double>(rows.size());
  }
  Residual result{.freedom = static_cast<double>((rows.size() - 1) * (seeds - 1))};
  for (const std::vector<double>& row : rows)
    for (size_t seed = 0; seed < seeds; ++seed) {
      const double rest = row[seed] - mean(row) - of_seed[seed] + overall;
      result.squares += rest * rest;
    }
  return result;
}

}  // namespace

ErrorVariance error_variance(std::span<const SeedTable> tables) {
  Residual sum;
  const auto add = [&](const SeedTable& rows) {
    const Residual of_rows = residual(rows);
    sum.squares += of_rows.squares;
    sum.freedom += of_rows.freedom;
  };
  for (const SeedTable& table : tables) {
    SeedTable rows;
    std::ranges::copy_if(table, std::back_inserter(rows), is_complete);
    if (rows.size() < 2 || rows.front().size() < 2) continue;
    constexpr size_t kSeedsForTwoOrders = 4;
    if (rows.front().size() < kSeedsForTwoOrders) {
      add(rows);
      continue;
    }
    for (const size_t first : {0, 1}) {
      SeedTable of_order;
      for (const std::vector<double>& row : rows) of_order.push_back(every_second(row, first));
      add(of_order);
    }
  }
  if (sum.freedom == 0) return {};
  return {sum.squares / sum.freedom, sum.freedom};
}

Effect effect(std::span<const double> differences, const ErrorVariance& error, int tests) {
  Effect result;
  double orders = 0;
  double sum = 0;
  double variances = 0;  ///< of the means, where a difference has one of 1
  for (const size_t first : {0, 1}) {
    std::vector<double> known = every_second(differences, first);
    std::erase_if(known, [](double value) { return !std::isfinite(value); });
    if (known.empty()) continue;
    result.seeds += static_cast<int>(known.size());
    orders += 1;
    sum += mean(known);
    variances += 1 / static_cast<double>(known.size());
  }
  if (result.seeds == 0) return result;
  result.difference = sum / orders;
  if (error.freedom == 0) return result;
  const double deviation = std::sqrt(2 * error.variance * variances) / orders;
  const double half = deviation * student_critical((1 - 0.95) / 2, error.freedom);
  result.low = result.difference - half;
  result.high = result.difference + half;
  result.p = deviation > 0
                 ? 2 * student_upper_tail(std::abs(result.difference) / deviation, error.freedom)
                 : (result.difference == 0 ? 1.0 : 0.0);
  const double corrected = kAlpha / std::max(tests, 1) / 2;
  result.detectable = deviation * (student_critical(corrected, error.freedom) +
                                   student_critical(1 - kPower, error.freedom));
  return result;
}

void correct(std::span<Effect*> effects) {
  std::vector<double> p;
  for (const Effect* each : effects) p.push_back(each->p);
  const std::vector<double> corrected = holm(p);
  for (size_t i = 0; i < effects.size(); ++i) effects[i]->p_corrected = corrected[i];
}

}  // namespace fullbore
