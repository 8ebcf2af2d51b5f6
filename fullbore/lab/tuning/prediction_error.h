#pragma once
#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace fullbore {

/// What was predicted of something and what was measured, in one unit, both positive.
struct Prediction {
  std::string name;
  double predicted = 0, measured = 0;
};

/// How far predictions are from what was measured. NaN: too few are known.
struct PredictionError {
  static constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

  size_t count = 0;
  double median = kUnknown;  ///< of |predicted / measured - 1|
  double worst = kUnknown;
  std::string worst_name;
  double rank_correlation =
      kUnknown;  ///< Spearman's, equal ones have their mean rank; of three or more that differ
};

/// Those of which one is not positive and finite are left out. Source of the correlation: Spearman 1904, American Journal of Psychology
/// 15, 72-101.
PredictionError prediction_error(std::span<const Prediction> predictions);

}  // namespace fullbore
