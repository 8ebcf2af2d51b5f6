#include "workloads/peptide/precision_curve.h"

#include <algorithm>
#include <numeric>

namespace fullbore::peptide {

std::vector<CurvePoint> precision_coverage_curve(std::span<const RankedPrediction> predictions) {
  std::vector<size_t> order(predictions.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return predictions[a].confidence > predictions[b].confidence;
  });
  std::vector<CurvePoint> curve;
  curve.reserve(order.size());
  double correct = 0;
  for (size_t begin = 0; begin < order.size();) {
    const double confidence = predictions[order[begin]].confidence;
    size_t end = begin;
    double correct_here = 0;
    while (end < order.size() && predictions[order[end]].confidence == confidence)
      correct_here += predictions[order[end++]].is_correct ? 1 : 0;
    const auto count = static_cast<double>(end - begin);
    for (size_t k = begin + 1; k <= end; ++k) {
      const double share = static_cast<double>(k - begin) / count;
      curve.push_back({confidence, static_cast<double>(k) / static_cast<double>(order.size()),
                       (correct + share * correct_here) / static_cast<double>(k)});
    }
    correct += correct_here;
    begin = end;
  }
  return curve;
}

double area_under_curve(std::span<const CurvePoint> curve) {
  double area = 0;
  for (size_t i = 1; i < curve.size(); ++i)
    area += (curve[i].coverage - curve[i - 1].coverage) *
            (curve[i].precision + curve[i - 1].precision) / 2;
  return area;
}

std::optional<CurvePoint> coverage_at_precision(std::span<const CurvePoint> curve,
                                                double precision) {
  for (size_t i = curve.size(); i > 0; --i)
    if (curve[i - 1].precision >= precision) return curve[i - 1];
  return {};
}

}  // namespace fullbore::peptide
