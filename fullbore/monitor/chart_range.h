#pragma once

namespace fullbore {

/// What of an axis values take, and where they lie on it.
struct ChartRange {
  double least;
  double most;

  ChartRange();             ///< of no values
  void take(double value);  ///< values that are not finite are left out
  /// Never empty, and never of no extent, from now on.
  void settle();
  /// 0 at the least, 1 at the most; of a settled range.
  double share(double value) const;
  /// 1, 2 or 5 times a power of ten, so that about `ticks` multiples of it are in the range, which is settled.
  double tick(double ticks = 5) const;
};

}  // namespace fullbore
