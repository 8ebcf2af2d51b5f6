#include "fullbore/monitor/memory_growth.h"

#include <algorithm>

namespace fullbore {
namespace {

// Points of the window are at least so many steps apart: it stays small at any pace.
constexpr int64_t kSpacing = 16;

}  // namespace

void MemoryGrowth::add(int64_t step, double mib) {
  if (!points_.empty() && step < points_.back().step) points_.clear();
  if (!points_.empty() && step - points_.back().step < kSpacing) return;
  points_.push_back({step, mib});
  size_t old = 0;
  while (points_.size() - old > kLeastPoints && points_[old + 1].step <= step - kSteps) ++old;
  points_.erase(points_.begin(), points_.begin() + static_cast<std::ptrdiff_t>(old));
}

std::optional<double> MemoryGrowth::per_thousand_steps() const {
  if (points_.size() < kLeastPoints || points_.back().step - points_.front().step < kSteps)
    return {};
  const std::span<const Point> all = points_;
  const size_t half = all.size() / 2;
  return std::min(slope(all.first(half)), slope(all.last(half))) * 1000;
}

double MemoryGrowth::slope(std::span<const Point> points) {
  std::vector<double> slopes;
  slopes.reserve(points.size() * (points.size() - 1) / 2);
  for (size_t i = 0; i < points.size(); ++i)
    for (size_t j = i + 1; j < points.size(); ++j)
      slopes.push_back((points[j].mib - points[i].mib) /
                       static_cast<double>(points[j].step - points[i].step));
  const auto middle = slopes.begin() + static_cast<std::ptrdiff_t>(slopes.size() / 2);
  std::ranges::nth_element(slopes, middle);
  return *middle;
}

}  // namespace fullbore
