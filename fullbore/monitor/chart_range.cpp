#include "fullbore/monitor/chart_range.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace fullbore {

ChartRange::ChartRange()
    : least(std::numeric_limits<double>::infinity()),
      most(-std::numeric_limits<double>::infinity()) {}

void ChartRange::take(double value) {
  if (!std::isfinite(value)) return;
  least = std::min(least, value);
  most = std::max(most, value);
}

void ChartRange::settle() {
  if (!(least <= most)) least = most = 0;
  if (least == most) {
    const double margin = least == 0 ? 1 : std::abs(least) / 2;
    least -= margin;
    most += margin;
  }
}

double ChartRange::share(double value) const {
  // Halves, so that the distance of the largest doubles is finite.
  return (value / 2 - least / 2) / (most / 2 - least / 2);
}

double ChartRange::tick(double ticks) const {
  const double raw = (most / 2 - least / 2) / (ticks / 2);
  const double power = std::pow(10, std::floor(std::log10(raw)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= raw) return factor * power;
  return 10 * power;
}

}  // namespace fullbore
