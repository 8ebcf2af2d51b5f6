#include "fullbore/nn/rotary.h"

#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "fullbore/base/error.h"
#include "fullbore/ir/fp32_scope.h"
#include "fullbore/ops/ops.h"

namespace fullbore::nn {
namespace {

double scaled(double frequency, const RotaryScaling& scaling) {
  using Kind = RotaryScaling::Kind;
  if (scaling.kind == Kind::none) return frequency;
  const double lowered = frequency / scaling.factor;
  if (scaling.kind == Kind::linear) return lowered;
  const double waves = static_cast<double>(scaling.original) * frequency / (2 * std::numbers::pi);
  if (waves < scaling.low) return lowered;
  if (waves > scaling.high) return frequency;
  const double share = (waves - scaling.low) / (scaling.high - scaling.low);
  return (1 - share) * lowered + share * frequency;
}

}  // namespace

std::vector<double> rotary_frequencies(int64_t width, double theta, const RotaryScaling& scaling) {
  if (width < 2 || width % 2 != 0 || !(theta > 0))
    throw UsageError(fmt::format(
        "rotary positions need heads of an even width and a positive theta, got {} and {}", width,
        theta));
  std::vector<double> frequencies;
  for (int64_t i = 0; i < width / 2; ++i) {
    const double exponent = 2 * static_cast<double>(i) / static_cast<double>(width);
    frequencies.push_back(scaled(std::pow(theta, -exponent), scaling));
  }
  return frequencies;
}

RotaryTables rotary_tables(Tensor positions, const std::vector<double>& frequencies,
                           SourceLoc loc) {
  if (positions.rank() != 1 && positions.rank() != 2)
    throw UsageError(
        fmt::format("rotary_tables: needs positions [T] or [B,T], got {}", positions.type().text()),
        loc);
  GraphBuilder& builder = positions.builder();
  // An angle in bf16 would be off by whole turns.
  const Fp32Scope island(builder);
  std::vector<double> twice = frequencies;
  twice.insert(twice.end(), frequencies.begin(), frequencies.end());
  const auto width = static_cast<int64_t>(twice.size());
  const int64_t batch = positions.rank() == 2 ? positions.dim(0) : 1;
  const Tensor places =
      reshape(cast(positions, DType::f32, loc), {batch, positions.dim(-1), 1, 1}, loc);
  const Tensor angles = places * constant(builder, {DType::f32, {width}}, twice, loc);
  return {cos(angles, loc), sin(angles, loc)};
}

Tensor rotate(Tensor x, const RotaryTables& tables, int64_t turned, SourceLoc loc) {
  const int64_t width = x.rank() == 4 ? x.dim(3) : 0;
  if (width == 0 || width != tables.cosine.dim(3))
    throw UsageError(
        fmt::format("rotate: needs x [B,T,N,{}], got {}", tables.cosine.dim(3), x.type().text()),
        loc);
  const Tensor wide = cast(x, DType::f32, loc);
  const int64_t half = width / 2;
  // Each half where the other was, zeros elsewhere: a kernel reads them in place, without a copy.
  const Tensor second_first = pad(wide, 3, -half, half, 0, loc);
  const Tensor first_second = pad(wide, 3, half, -half, 0, loc);
  Tensor y = wide * tables.cosine + (first_second - second_first) * tables.sine;
  if (turned >= 0 && turned < x.dim(2)) {
    const Tensor head = iota(x.builder(), {DType::i32, {x.dim(2), 1}}, 0, loc);
    y = select(less(head, static_cast<double>(turned)), y, wide);
  }
  return cast(y, x.dtype(), loc);
}

}  // namespace fullbore::nn
