#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace fullbore::peptide {

/// A prediction as far as its place in the curve goes.
struct RankedPrediction {
  double confidence = 0;  ///< the highest first; -infinity where nothing was predicted
  bool is_correct = false;
};

struct CurvePoint {
  double confidence = 0;  ///< of the last prediction taken
  double coverage = 0;    ///< k / N
  double precision = 0;   ///< correct among the k most confident, over k
};

/// One point a prediction, the most confident first. Predictions of one confidence have no order among
/// themselves: each point has the mean over all their orders, so that the order of a file is nothing to
/// the curve. Confidences must not be NaN.
std::vector<CurvePoint> precision_coverage_curve(std::span<const RankedPrediction> predictions);

/// Area under the curve by trapezoids between its points, that is from coverage 1/N on; 0 of less than
/// two.
double area_under_curve(std::span<const CurvePoint> curve);

/// The largest coverage at which precision is at least `precision`, and nothing where it never is.
std::optional<CurvePoint> coverage_at_precision(std::span<const CurvePoint> curve,
                                                double precision);

}  // namespace fullbore::peptide
