#include "fullbore/lab/ablation/effects.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "fullbore/lab/quality/equivalence.h"
#include "fullbore/lab/quality/student_t.h"
#include "fullbore/monitor/sample_statistics.h"

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

/// Of a table: arms whose figures are complete, and seeds whose runs were started in the same order.
struct Layout {
  std::vector<size_t> arms;
  std::vector<size_t> seeds;
  double figures() const { return static_cast<double>(arms.size() * seeds.size()); }
  double freedom() const { return static_cast<double>((arms.size() - 1) * (seeds.size() - 1)); }
};

std::vector<Layout> layouts_of(const SeedTable& table) {
  Layout all;
  for (size_t arm = 0; arm < table.size(); ++arm)
    if (is_complete(table[arm])) all.arms.push_back(arm);
  if (all.arms.size() < 2 || table[all.arms[0]].size() < 2) return {};
  all.seeds.resize(table[all.arms[0]].size());
  std::iota(all.seeds.begin(), all.seeds.end(), size_t{0});
  constexpr size_t kSeedsForTwoOrders = 4;
  if (all.seeds.size() < kSeedsForTwoOrders) return {all};
  std::vector<Layout> orders(2, {.arms = all.arms, .seeds = {}});
  for (const size_t seed : all.seeds) orders[seed % 2].seeds.push_back(seed);
  return orders;
}

/// By arm and seed of the layout: the arm's mean and the seed's, less the mean of all.
SeedTable fitted(const SeedTable& table, const Layout& layout) {
  std::vector<double> of_arm(layout.arms.size(), 0);
  std::vector<double> of_seed(layout.seeds.size(), 0);
  double overall = 0;
  for (size_t i = 0; i < layout.arms.size(); ++i)
    for (size_t j = 0; j < layout.seeds.size(); ++j) {
      const double value = table[layout.arms[i]][layout.seeds[j]];
      of_arm[i] += value / static_cast<double>(layout.seeds.size());
      of_seed[j] += value / static_cast<double>(layout.arms.size());
      overall += value / layout.figures();
    }
  SeedTable fit(layout.arms.size());
  for (size_t i = 0; i < layout.arms.size(); ++i)
    for (const double seed : of_seed) fit[i].push_back(of_arm[i] + seed - overall);
  return fit;
}

}  // namespace

ErrorVariance error_variance(std::span<const SeedTable> tables) {
  double squares = 0;
  double freedom = 0;
  for (const SeedTable& table : tables)
    for (const Layout& layout : layouts_of(table)) {
      const SeedTable fit = fitted(table, layout);
      for (size_t i = 0; i < layout.arms.size(); ++i)
        for (size_t j = 0; j < layout.seeds.size(); ++j)
          squares += std::pow(table[layout.arms[i]][layout.seeds[j]] - fit[i][j], 2);
      freedom += layout.freedom();
    }
  if (freedom == 0) return {};
  return {squares / freedom, freedom};
}

ClippedTables clip_outliers(std::span<const SeedTable> tables) {
  constexpr size_t kLeastSeeds = 10;
  constexpr double kDeviationsOfMedian = 1.4826;  // of normal residuals
  constexpr double kMostDeviations = 1.5;
  constexpr int kMostRounds = 100;
  ClippedTables result{.tables = {tables.begin(), tables.end()}};
  struct Part {
    size_t table;
    Layout layout;
  };
  std::vector<Part> parts;
  double figures = 0;
  double freedom = 0;
  for (size_t table = 0; table < tables.size(); ++table)
    for (Layout& layout : layouts_of(tables[table])) {
      if (tables[table][layout.arms[0]].size() < kLeastSeeds) continue;
      figures += layout.figures();
      freedom += layout.freedom();
      parts.push_back({table, std::move(layout)});
    }
  for (int round = 0; round < kMostRounds && freedom > 0; ++round) {
    std::vector<SeedTable> fits;
    std::vector<double> sizes;
    for (const Part& part : parts) {
      const auto& [arms, seeds] = part.layout;
      const SeedTable& fit = fits.emplace_back(fitted(result.tables[part.table], part.layout));
      for (size_t i = 0; i < arms.size(); ++i)
        for (size_t j = 0; j < seeds.size(); ++j)
          sizes.push_back(std::abs(tables[part.table][arms[i]][seeds[j]] - fit[i][j]));
    }
    const double limit =
        kMostDeviations * kDeviationsOfMedian * median(sizes) * std::sqrt(figures / freedom);
    double change = 0;
    double within = 0;
    for (size_t k = 0; k < parts.size(); ++k) {
      const auto& [arms, seeds] = parts[k].layout;
      for (size_t i = 0; i < arms.size(); ++i)
        for (size_t j = 0; j < seeds.size(); ++j) {
          const double fit = fits[k][i][j];
          const double rest = tables[parts[k].table][arms[i]][seeds[j]] - fit;
          double& kept = result.tables[parts[k].table][arms[i]][seeds[j]];
          const double clipped = fit + std::clamp(rest, -limit, limit);
          change = std::max(change, std::abs(clipped - kept));
          kept = clipped;
          within += std::abs(rest) <= limit ? 1 : 0;
        }
    }
    const double share = within / figures;
    const double correction = 1 + (figures - freedom) / figures * (1 - share) / share;
    result.variance_factor = std::pow(correction / share, 2);
    constexpr double kSettled = 1e-6;
    if (change <= kSettled * limit) break;
  }
  return result;
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
