#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace fullbore {

/// Does memory grow with the steps? A slope over the last 1,000 steps and one over the 1,000 before: the lesser counts, for
/// a leak goes on, and a cache that fills, or buffers that are there from some step on, do not. Each is the median of
/// the slopes between all pairs of points (Theil 1950, Sen 1968), which peaks up to a quarter of the points do not move.
/// Where samples are rare it takes more steps: 32 points each.
class MemoryGrowth {
 public:
  /// Resident memory of one sample. Steps that go back begin anew.
  void add(int64_t step, double mib);

  /// MiB in 1,000 steps, negative where it falls. Nothing before there are enough points.
  std::optional<double> per_thousand_steps() const;

 private:
  static constexpr int64_t kSteps = 2000;
  static constexpr size_t kLeastPoints = 64;
  struct Point {
    int64_t step;
    double mib;
  };
  static double slope(std::span<const Point> points);
  std::vector<Point> points_;  ///< by step
};

}  // namespace fullbore
