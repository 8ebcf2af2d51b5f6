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

/// Sum of squares that neither arms nor seeds explain.
double residual_squares(const SeedTable& rows) {
  const size_t seeds = rows.front().size();
  std::vector<double> of_seed(seeds, 0);
  double overall = 0;
  for (const std::vector<double>& row : rows) {
    overall += mean(row) / static_cast<double>(rows.size());
    for (size_t seed = 0; seed < seeds; ++seed)
      of_seed[seed] += row[seed] / static_cast<double>(rows.size());
  }
  double squares = 0;
  for (const std::vector<double>& row : rows)
    for (size_t seed = 0; seed < seeds; ++seed) {
      const double residual = row[seed] - mean(row) - of_seed[seed] + overall;
      squares += residual * residual;
    }
  return squares;
}

}  // namespace

ErrorVariance error_variance(std::span<const SeedTable> tables) {
  double squares = 0;
  double freedom = 0;
  for (const SeedTable& table : tables) {
    SeedTable rows;
    std::ranges::copy_if(table, std::back_inserter(rows), is_complete);
    if (rows.size() < 2 || rows.front().size() < 2) continue;
    squares += residual_squares(rows);
    freedom += static_cast<double>((rows.size() - 1) * (rows.front().size() - 1));
  }
  if (freedom == 0) return {};
  return {squares / freedom, freedom};
}

Effect effect(std::span<const double> differences, const ErrorVariance& error, int tests) {
  Effect result;
  std::vector<double> known;
  std::ranges::copy_if(differences, std::back_inserter(known),
                       [](double value) { return std::isfinite(value); });
  result.seeds = static_cast<int>(known.size());
  if (known.empty()) return result;
  result.difference = mean(known);
  if (error.freedom == 0) return result;
  const double deviation = std::sqrt(2 * error.variance / static_cast<double>(known.size()));
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
