#include "workloads/energy_flow/flow_draws.h"

#include <cmath>
#include <numbers>
#include <vector>

namespace fullbore::energy_flow {
namespace {

constexpr int kStepShift = 32;
constexpr int kGroupShift = 48;
constexpr int kSiteShift = 40;
constexpr int kFractionBits = 24;
constexpr int kMaskBits = 16;
constexpr int64_t kMasksOfHalf = 64 / kMaskBits;

Tensor shifted(Tensor x, int bits) { return shift_left(x, static_cast<double>(bits)); }

// Bits [first, first + count) of each word, as a number.
Tensor bits_of(Tensor words, int first, int count) {
  return shift_right(shifted(words, 64 - first - count), static_cast<double>(64 - count));
}

// A pair of normal numbers of each word: [n] each.
std::vector<Tensor> normal_pair(Tensor words, DType dtype) {
  const double unit = std::ldexp(1.0, -kFractionBits);
  // In (0, 1], for its logarithm.
  const Tensor first = cast(bits_of(words, 32 - kFractionBits, kFractionBits) + 1.0, dtype) * unit;
  const Tensor angle = cast(bits_of(words, 64 - kFractionBits, kFractionBits), dtype) *
                       (2 * std::numbers::pi * unit);
  const Tensor radius = sqrt(log(first) * -2.0);
  return {radius * cos(angle), radius * sin(angle)};
}

}  // namespace

FlowDraws::Counters FlowDraws::counters(const Flows& flows) const {
  Tensor step = flows.step;
  if (source_.iteration.valid()) step = step + source_.iteration * static_cast<double>(most_steps_);
  return {flows.id + shifted(step, kStepShift),
          source_.step + std::ldexp(static_cast<double>(source_.site), kSiteShift)};
}

Tensor FlowDraws::normals(const Flows& flows, DType dtype) const {
  const auto [low, high] = counters(flows);
  const std::vector<Tensor> plane = normal_pair(philox(source_.seed, low, high), dtype);
  const std::vector<Tensor> axis = normal_pair(philox_upper(source_.seed, low, high), dtype);
  const Tensor parts[] = {expand_dims(plane[0], 1), expand_dims(plane[1], 1),
                          expand_dims(axis[0], 1)};
  return stop_gradient(concat(parts, 1));
}

Tensor FlowDraws::dropout(const Flows& flows, Tensor x, double probability) const {
  const auto [low, high] = counters(flows);
  const int64_t channels = x.dim(1);
  const int64_t groups = (channels + 2 * kMasksOfHalf - 1) / (2 * kMasksOfHalf);
  const Tensor group = iota(x.builder(), {DType::i64, {1, groups}}, 1);
  const Tensor low_of_group = expand_dims(low, 1) + shifted(group, kGroupShift);
  std::vector<Tensor> masks;
  for (const Tensor& words :
       {philox(source_.seed, low_of_group, high), philox_upper(source_.seed, low_of_group, high)})
    for (int64_t i = 0; i < kMasksOfHalf; ++i)
      masks.push_back(expand_dims(bits_of(words, static_cast<int>(i) * kMaskBits, kMaskBits), 2));
  const Tensor all =
      slice(reshape(concat(masks, 2), {x.dim(0), groups * 2 * kMasksOfHalf}), 1, 0, channels);
  const double threshold = std::round(std::ldexp(probability, kMaskBits));
  const double kept = 1 - std::ldexp(threshold, -kMaskBits);
  return select(greater_equal(all, threshold), x / kept, 0.0);
}

}  // namespace fullbore::energy_flow
