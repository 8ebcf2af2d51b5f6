#pragma once
#include <cstdint>
#include <optional>
#include <vector>

namespace fullbore {

/// Does memory grow with the steps? A robust slope over the last 1,000 steps, or over the last 32 points where samples
/// are rarer than that: the median of the slopes between all pairs of points (Theil 1950, Sen 1968). A step up at the start,
/// a cache that fills, or peaks up to a quarter of the points do not move it.
class MemoryGrowth {
 public:
  static constexpr int64_t kSteps = 1000;
  static constexpr size_t kLeastPoints = 32;

  /// Resident memory of one sample. Steps that go back begin anew.
  void add(int64_t step, double mib);

  /// MiB in 1,000 steps; nothing before the points span kSteps steps, and where the growth is no trend: the last quarter
  /// of the points is then not above the third, that not above the second, and that not above the first.
  std::optional<double> per_thousand_steps() const;

 private:
  struct Point {
    int64_t step;
    double mib;
  };
  std::vector<Point> points_;  ///< by step
};

}  // namespace fullbore
