#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "fullbore/lab/quality/equivalence.h"
#include "fullbore/lab/quality/measured_items.h"

namespace fullbore {

/// Two models on the same held-out items: of these two, and no others. What another seed would have made of either is
/// for a gate to say (gate.h).
struct ItemComparison {
  std::string subject, baseline;
  std::string data, unit;
  int64_t items = 0;
  EquivalenceOptions options;
  EquivalenceReport test;  ///< A is the baseline, B the subject
  std::vector<std::string> notes = {};
};

/// Least items for which a bootstrap is trusted.
inline constexpr int64_t kLeastItems = 20;

/// Is the subject no worse than the baseline? Intervals and p-values are of 4,000 resamples of items, both models' figures
/// of an item together; a figure is that of the means over what was drawn. Fewer than kLeastItems decide nothing. Metrics of
/// training are not measured, which is a note. UsageError where items differ, and which first.
/// Source: Efron, Tibshirani 1993, "An Introduction to the Bootstrap", section 13.3.
ItemComparison compare_items(const MeasuredItems& subject, const MeasuredItems& baseline,
                             const QualityMetrics& metrics, const EquivalenceOptions& options);

std::string comparison_text(const ItemComparison& comparison);
nlohmann::ordered_json comparison_json(const ItemComparison& comparison);

}  // namespace fullbore
