#include "workloads/latentwire/schedules.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "fullbore/data/split_mix.h"

namespace fullbore::latentwire {
namespace {

constexpr int64_t kFirstWarmupSteps = 200;
constexpr double kLeastPeak = 8, kFirstLatentScale = 0.2;

}  // namespace

double FirstWeight::at(int64_t step, int64_t steps) const {
  const auto i = static_cast<double>(step), n = static_cast<double>(steps);
  if (kind == Kind::none) return weight;
  if (kind == Kind::warmup) return weight * std::min(1.0, i / kFirstWarmupSteps);
  const double top = peak > 0 ? peak : std::max(kLeastPeak, 2 * weight);
  if (i < hold * n) return top;
  if (step >= steps) return weight;
  const double u = (i - hold * n) / (n - hold * n);
  return weight + (top - weight) * (1 + std::cos(std::numbers::pi * u)) / 2;
}

double Curriculum::at(int64_t step, int64_t steps) const {
  const double p =
      steps < 2 ? 1 : std::min(1.0, static_cast<double>(step) / static_cast<double>(steps - 1));
  return start + (end - start) * std::pow(p, power);
}

int64_t Curriculum::whole_at(int64_t step, int64_t steps) const {
  return static_cast<int64_t>(std::nearbyint(at(step, steps)));
}

bool TextSteps::is_text(int64_t step) const {
  if (step < warmup) return step % 2 == 0;
  SplitMix64 draws(mixed_key({key, static_cast<uint64_t>(step)}));
  return static_cast<double>(draws.bits() >> 11) * 0x1p-53 < tail_probability;
}

double TextSteps::latent_scale(int64_t step) const {
  if (warmup == 0 || step >= warmup) return 1;
  return kFirstLatentScale +
         (1 - kFirstLatentScale) * static_cast<double>(step) / static_cast<double>(warmup);
}

}  // namespace fullbore::latentwire
