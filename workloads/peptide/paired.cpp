#include "workloads/peptide/paired.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "fullbore/base/check.h"
#include "fullbore/base/philox.h"

namespace fullbore::peptide {
namespace {

double ratio(double part, double whole) { return whole == 0 ? 0 : part / whole; }

/// The spectra of each replicate: how often each is drawn. Every measure sees the same draws.
void draw(size_t spectra, uint64_t key, int replicate, std::vector<uint32_t>& times) {
  PhiloxStream draws(key, static_cast<uint64_t>(replicate));
  std::fill(times.begin(), times.end(), 0U);
  for (size_t i = 0; i < spectra; ++i) ++times[draws.below(spectra)];
}

/// A measure of one side, of spectra that count as often as `times` says.
using Measure = std::function<double(std::span<const uint32_t> times)>;

Measure ratio_measure(std::vector<RatioTerm> terms) {
  return [terms = std::move(terms)](std::span<const uint32_t> times) {
    RatioTerm sum;
    for (size_t i = 0; i < times.size(); ++i) {
      sum.part += times[i] * terms[i].part;
      sum.whole += times[i] * terms[i].whole;
    }
    return ratio(sum.part, sum.whole);
  };
}

/// Area under the precision-coverage curve, sorted once for all replicates. Copies of a spectrum have its
/// confidence, and are ties like any other.
Measure area_measure(std::span<const PeptideOutcome> outcomes) {
  std::vector<size_t> order(outcomes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto confidence = [&](size_t i) {
    return outcomes[i].is_predicted ? outcomes[i].confidence
                                    : -std::numeric_limits<double>::infinity();
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t i, size_t j) { return confidence(i) > confidence(j); });
  std::vector<bool> is_last(order.size());  // of its confidence
  std::vector<double> correct(order.size());
  for (size_t k = 0; k < order.size(); ++k) {
    is_last[k] = k + 1 == order.size() || confidence(order[k]) != confidence(order[k + 1]);
    correct[k] = outcomes[order[k]].is_matched ? 1 : 0;
  }
  return [order, is_last, correct](std::span<const uint32_t> times) {
    double taken = 0;
    double right = 0;
    double area = 0;
    double tied = 0;
    double tied_right = 0;
    double previous = -1;
    for (size_t k = 0; k < order.size(); ++k) {
      tied += times[order[k]];
      tied_right += times[order[k]] * correct[k];
      if (!is_last[k]) continue;
      for (double i = 1; i <= tied; ++i) {
        const double precision = (right + tied_right * i / tied) / (taken + i);
        if (previous >= 0) area += (previous + precision) / 2;
        previous = precision;
      }
      taken += tied;
      right += tied_right;
      tied = tied_right = 0;
    }
    return ratio(area, taken);
  };
}

struct Candidate {
  PairedMeasure found;
  Measure a;
  Measure b;

  Candidate(const char* name, const char* unit, Measure of_a, Measure of_b)
      : a(std::move(of_a)), b(std::move(of_b)) {
    found.name = name;
    found.unit = unit;
  }
};

template <class Outcome, class Term>
std::vector<RatioTerm> terms_of(std::span<const Outcome> outcomes, const Term& term) {
  std::vector<RatioTerm> terms;
  terms.reserve(outcomes.size());
  for (const Outcome& outcome : outcomes) terms.push_back(term(outcome));
  return terms;
}

/// Two sides of one kind of outcome, and what is measured of them.
template <class Outcome>
struct Sides {
  std::span<const Outcome> a;
  std::span<const Outcome> b;
  std::vector<Candidate> candidates;

  template <class Term>
  Candidate& add(const char* name, const char* unit, const Term& term) {
    candidates.emplace_back(name, unit, ratio_measure(terms_of(a, term)),
                            ratio_measure(terms_of(b, term)));
    return candidates.back();
  }
  /// The mean of an error that not every spectrum has; no measure where a side has none at all.
  template <class Error>
  void add_error(const Error& error) {
    const auto is_known = [&](const Outcome& outcome) { return !std::isnan(error(outcome)); };
    if (std::none_of(a.begin(), a.end(), is_known) || std::none_of(b.begin(), b.end(), is_known))
      return;
    add("mass_error", "ppm", [&](const Outcome& outcome) {
      return is_known(outcome) ? RatioTerm{error(outcome), 1} : RatioTerm{};
    });
  }
  template <class Is>
  void add_right_or_wrong(const char* name, const Is& is) {
    PairedMeasure& found = add(name, "", [&](const Outcome& outcome) {
                             return RatioTerm{is(outcome) ? 1.0 : 0.0, 1};
                           }).found;
    for (size_t i = 0; i < a.size(); ++i) {
      found.only_a += is(a[i]) && !is(b[i]) ? 1 : 0;
      found.only_b += is(b[i]) && !is(a[i]) ? 1 : 0;
    }
    found.mcnemar_p = mcnemar_exact(found.only_a, found.only_b);
  }
};

Interval percentiles(std::vector<double> values, double confidence) {
  std::sort(values.begin(), values.end());
  const auto at = [&](double share) {
    const double place = share * static_cast<double>(values.size() - 1);
    const auto low = static_cast<size_t>(place);
    const double weight = place - static_cast<double>(low);
    return values[low] + weight * (values[std::min(low + 1, values.size() - 1)] - values[low]);
  };
  return {at((1 - confidence) / 2), at((1 + confidence) / 2)};
}

PairedReport compare(size_t spectra, std::vector<Candidate>& candidates,
                     const PairedOptions& options) {
  FB_CHECK(options.replicates > 0 && options.confidence > 0 && options.confidence < 1,
           "{} replicates, confidence {}", options.replicates, options.confidence);
  PairedReport report{static_cast<int64_t>(spectra), options, {}};
  std::vector<uint32_t> times(spectra, 1);
  for (Candidate& candidate : candidates) {
    candidate.found.a = candidate.a(times);
    candidate.found.b = candidate.b(times);
    candidate.found.difference = candidate.found.b - candidate.found.a;
  }
  std::vector<std::vector<double>> differences(candidates.size());
  for (int replicate = 0; replicate < options.replicates && spectra > 0; ++replicate) {
    draw(spectra, options.key, replicate, times);
    for (size_t i = 0; i < candidates.size(); ++i)
      differences[i].push_back(candidates[i].b(times) - candidates[i].a(times));
  }
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (spectra > 0)
      candidates[i].found.interval = percentiles(std::move(differences[i]), options.confidence);
    report.measures.push_back(std::move(candidates[i].found));
  }
  return report;
}

bool have_confidences(std::span<const PeptideOutcome> outcomes) {
  return std::none_of(outcomes.begin(), outcomes.end(), [](const PeptideOutcome& outcome) {
    return outcome.is_predicted && std::isnan(outcome.confidence);
  });
}

}  // namespace

double mcnemar_exact(int64_t only_a, int64_t only_b) {
  const auto total = static_cast<double>(only_a + only_b);
  const auto least = static_cast<double>(std::min(only_a, only_b));
  // In logarithms: 2^-total is below the least double from 1075 on.
  double tail = 0;
  for (double k = 0; k <= least; ++k)
    tail += std::exp(std::lgamma(total + 1) - std::lgamma(k + 1) - std::lgamma(total - k + 1) -
                     total * std::log(2.0));
  return std::min(1.0, 2 * tail);
}

PairedReport compare_peptides(std::span<const PeptideOutcome> a, std::span<const PeptideOutcome> b,
                              const PairedOptions& options) {
  FB_CHECK(a.size() == b.size(), "{} and {} spectra", a.size(), b.size());
  using Outcome = PeptideOutcome;
  Sides<Outcome> sides{a, b, {}};
  sides.add("aa_precision", "", [](const Outcome& outcome) {
    return RatioTerm{1.0 * outcome.matched_residues, 1.0 * outcome.predicted_residues};
  });
  sides.add("aa_recall", "", [](const Outcome& outcome) {
    return RatioTerm{1.0 * outcome.matched_residues, 1.0 * outcome.true_residues};
  });
  sides.add_right_or_wrong("peptide_precision",
                           [](const Outcome& outcome) { return outcome.is_matched; });
  sides.add_right_or_wrong("sequences_equal_i_as_l",
                           [](const Outcome& outcome) { return outcome.is_equal_but_leucine; });
  if (have_confidences(a) && have_confidences(b))
    sides.candidates.emplace_back("aupc", "", area_measure(a), area_measure(b));
  sides.add_error([](const Outcome& outcome) { return std::abs(outcome.mass_error_ppm); });
  return compare(a.size(), sides.candidates, options);
}

PairedReport compare_slots(std::span<const SlotOutcome> a, std::span<const SlotOutcome> b,
                           const PairedOptions& options) {
  FB_CHECK(a.size() == b.size(), "{} and {} spectra", a.size(), b.size());
  using Outcome = SlotOutcome;
  Sides<Outcome> sides{a, b, {}};
  sides.add("token_accuracy", "", [](const Outcome& outcome) {
    return RatioTerm{1.0 * outcome.correct, 1.0 * outcome.slots};
  });
  sides.add("token_accuracy_i_as_l", "", [](const Outcome& outcome) {
    return RatioTerm{1.0 * outcome.correct_but_leucine, 1.0 * outcome.slots};
  });
  sides.add_right_or_wrong("sequence_accuracy",
                           [](const Outcome& outcome) { return outcome.is_equal; });
  sides.add_right_or_wrong("sequence_accuracy_i_as_l",
                           [](const Outcome& outcome) { return outcome.is_equal_but_leucine; });
  sides.add_error([](const Outcome& outcome) { return outcome.absolute_mass_error_ppm; });
  return compare(a.size(), sides.candidates, options);
}

}  // namespace fullbore::peptide
