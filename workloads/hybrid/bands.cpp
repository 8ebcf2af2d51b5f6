#include "workloads/hybrid/bands.h"

#include <algorithm>
#include <cmath>

namespace fullbore {
namespace {

// A value that is no number is in no range.
bool within(double value, double low, double high) { return value >= low && value <= high; }

Band of_ranges(bool ok, bool tolerable) {
  if (ok) return Band::ok;
  return tolerable ? Band::warn : Band::fail;
}

}  // namespace

const char* band_name(Band band) {
  if (band == Band::ok) return "OK";
  return band == Band::warn ? "WARN" : "FAIL";
}

Band gradient_ratio_band(double ratio) {
  return of_ranges(within(ratio, 1.0 / 3, 3), within(ratio, 0.1, 10));
}

Band branch_deviation_band(double deviation) { return of_ranges(deviation >= 0.01, false); }

Band variance_ratio_band(double ratio) {
  return of_ranges(within(ratio, 0.1, 10), within(ratio, 0.01, 100));
}

Band channel_entropy_band(double entropy) {
  return of_ranges(within(entropy, 2, 5), within(entropy, 1, 7));
}

Band state_growth_band(double ratio) { return of_ranges(ratio < 2, ratio <= 10); }

Band state_variance_band(double variance) { return of_ranges(variance > 1e-6, false); }

Band contribution_band(double rwkv, double mamba) {
  const double larger = std::max(rwkv, mamba), lesser = std::min(rwkv, mamba);
  const bool both = larger > 0 && lesser >= 0.01 * larger;
  return of_ranges(both && larger < 5 * lesser, both && larger <= 10 * lesser);
}

Band information_flow_band(double change) { return of_ranges(change > 0.01, change >= 0.001); }

Band state_cosine_band(double cosine) { return of_ranges(cosine < 0.95, cosine <= 0.99); }

Band singular_share_band(double share) { return of_ranges(share > 0.5, share >= 0); }

Band saturation_band(double share) { return of_ranges(share < 0.3, share <= 1); }

Band longer_segments_band(double ratio) { return of_ranges(ratio < 1.5, ratio <= 3); }

Band gradient_norm_band(double norm) {
  return of_ranges(within(norm, 0.5, 1.5), within(norm, 0, 5));
}

Band initial_entropy_band(double entropy, int64_t vocabulary) {
  const double uniform = std::log(static_cast<double>(vocabulary));
  return of_ranges(std::abs(entropy - uniform) < 0.1 * uniform, false);
}

}  // namespace fullbore
