#include "workloads/peptide/match.h"

#include <algorithm>
#include <cmath>

namespace fullbore::peptide {
namespace {

constexpr auto kIsoleucine = kFirstResidue + static_cast<int32_t>(kResidueLetters.find('I'));
constexpr auto kLeucine = kFirstResidue + static_cast<int32_t>(kResidueLetters.find('L'));

/// The walk from one end. `predicted[i]` is the i-th residue from that end, `place(i, j)` where in
/// `matches` a pair stands; `most` bounds how many of each are walked.
template <class Place>
void walk(std::span<const double> predicted, std::span<const double> truth, bool from_end,
          size_t most_predicted, size_t most_truth, MatchTolerance tolerance, Place place,
          std::vector<bool>& matches) {
  const auto at = [&](std::span<const double> masses, size_t i) {
    return masses[from_end ? masses.size() - 1 - i : i];
  };
  size_t i = 0;
  size_t j = 0;
  double predicted_sum = 0;
  double truth_sum = 0;
  while (i < most_predicted && j < most_truth) {
    const double a = at(predicted, i);
    const double b = at(truth, j);
    if (std::abs((predicted_sum + a) - (truth_sum + b)) < tolerance.cumulative) {
      matches[place(i, j)] = std::abs(a - b) < tolerance.residue;
      predicted_sum += a;
      truth_sum += b;
      ++i;
      ++j;
    } else if (truth_sum + b > predicted_sum + a) {
      predicted_sum += a;
      ++i;
    } else {
      truth_sum += b;
      ++j;
    }
  }
}

}  // namespace

std::vector<bool> match_residues(std::span<const double> predicted, std::span<const double> truth,
                                 MatchTolerance tolerance) {
  const size_t n = predicted.size();
  const size_t m = truth.size();
  std::vector<bool> matches(std::max(n, m), false);
  walk(
      predicted, truth, /*from_end=*/false, n, m, tolerance,
      [](size_t i, size_t j) { return std::max(i, j); }, matches);
  const auto first = std::find(matches.begin(), matches.end(), false);
  if (first == matches.end()) return matches;
  const auto stop = static_cast<size_t>(first - matches.begin());
  walk(
      predicted, truth, /*from_end=*/true, n - std::min(n, stop), m - std::min(m, stop), tolerance,
      [&](size_t i, size_t j) { return std::max(n - 1 - i, m - 1 - j); }, matches);
  return matches;
}

std::vector<int32_t> decoded_ids(std::span<const int32_t> ids, std::span<const uint8_t> mask) {
  std::vector<int32_t> kept;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] == kEnd || (!mask.empty() && mask[i] == 0)) break;
    if (ids[i] != kPad && ids[i] != kStart) kept.push_back(ids[i]);
  }
  return kept;
}

std::vector<double> residue_masses(std::span<const int32_t> ids, const ResidueAlphabet& alphabet) {
  std::vector<double> masses(ids.size());
  std::transform(ids.begin(), ids.end(), masses.begin(),
                 [&](int32_t id) { return alphabet.mass(id); });
  return masses;
}

double mass_error_ppm(double mass, double reference) {
  return (mass - reference) / reference * 1e6;
}

bool is_within(const PrecursorTolerance& tolerance, double peptide_mass, double measured_mass) {
  for (int isotope = tolerance.first_isotope; isotope <= tolerance.last_isotope; ++isotope) {
    const double difference = peptide_mass - (measured_mass - isotope * kIsotopeSpacing);
    if (std::abs(difference) <= tolerance.ppm * 1e-6 * measured_mass) return true;
  }
  return false;
}

int32_t merged_leucine(int32_t id) { return id == kIsoleucine ? kLeucine : id; }

bool are_equal(std::span<const int32_t> a, std::span<const int32_t> b, bool is_leucine_isoleucine) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](int32_t x, int32_t y) {
    return is_leucine_isoleucine ? merged_leucine(x) == merged_leucine(y) : x == y;
  });
}

}  // namespace fullbore::peptide
