#include "fullbore/nn/initializers.h"

#include <algorithm>
#include <cmath>

namespace fullbore::nn {
namespace {

// A layer without inputs has no elements to fill.
double positive(int64_t fan) { return static_cast<double>(std::max<int64_t>(1, fan)); }
double gain_of(double a) { return std::sqrt(2 / (1 + a * a)); }

}  // namespace

Initializer kaiming_uniform(int64_t fan_in, double a) {
  const double bound = gain_of(a) * std::sqrt(3 / positive(fan_in));
  return Initializer::uniform(-bound, bound);
}
Initializer kaiming_normal(int64_t fan_in, double a) {
  return Initializer::normal(gain_of(a) / std::sqrt(positive(fan_in)));
}
Initializer xavier_uniform(int64_t fan_in, int64_t fan_out, double gain) {
  const double bound = gain * std::sqrt(6 / positive(fan_in + fan_out));
  return Initializer::uniform(-bound, bound);
}
Initializer xavier_normal(int64_t fan_in, int64_t fan_out, double gain) {
  return Initializer::normal(gain * std::sqrt(2 / positive(fan_in + fan_out)));
}

}  // namespace fullbore::nn
