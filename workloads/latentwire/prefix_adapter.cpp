#include "workloads/latentwire/prefix_adapter.h"

#include <fmt/format.h>

#include "fullbore/ir/fp32_scope.h"
#include "fullbore/nn/modules.h"
#include "workloads/latentwire/prompt_encoder.h"
#include "workloads/latentwire/xavier.h"

namespace fullbore::latentwire {
namespace {

constexpr int64_t kRefinerHeads = 4;
constexpr double kCodeDeviation = 0.02, kColourEpsilon = 1e-6;
constexpr double kLeastSquare = 1e-30;  // of a row of zeros, of which nothing can be made

Tensor refine(Trace& trace, Tensor slots, int64_t layers) {
  for (int64_t layer = 0; layer < layers; ++layer)
    slots = encoder_layer(trace, fmt::format("refiner.{}", layer), slots, {},
                          {.heads = kRefinerHeads, .pre_norm = false, .dropout = 0});
  return layers == 0 ? slots : nn::layer_norm(trace, "refiner_norm", slots);
}

// Each vector standardised over its channels, then with the table's statistics.
Tensor coloured(Tensor y, const AdapterInputs& inputs) {
  const Tensor centred = y - reduce_mean(y, {2}, true);
  const Tensor standard =
      centred * rsqrt(reduce_mean(centred * centred, {2}, true) + kColourEpsilon);
  return standard * cast(inputs.deviation, y.dtype()) + cast(inputs.mean, y.dtype());
}

Tensor mean_square(Tensor y) {
  const Tensor whole = cast(y, y.dtype() == DType::f64 ? DType::f64 : DType::f32);
  return reduce_mean(whole * whole, {1, 2}, true);
}

}  // namespace

AdapterOutput adapt_slots(Trace& trace, const std::string& name, Tensor slots,
                          const AdapterSizes& sizes, const AdapterInputs& inputs) {
  const Scope scope(trace, name);
  const int64_t count = slots.dim(1), width = slots.dim(2), inner = 2 * width;
  if (sizes.length_hint) {
    const Tensor share = cast(reshape(inputs.length_share, {slots.dim(0), 1, 1}), slots.dtype());
    slots = slots + tanh(nn::linear(trace, "length", share, width, xavier(1, width)));
  }
  slots = refine(trace, slots, sizes.refiner);
  const Tensor code = trace.parameter("code", {count, width}, Initializer::normal(kCodeDeviation));
  const Tensor z = slots + cast(code, slots.dtype());
  const auto to_model = [&](const char* which, Tensor x) {
    return nn::linear(trace, which, x, sizes.width, xavier(x.dim(2), sizes.width));
  };
  const Tensor x = nn::layer_norm(trace, "norm", z);
  Tensor h = gelu(nn::linear(trace, "first", x, inner, xavier(width, inner)));
  h = gelu(nn::linear(trace, "middle", h, inner, xavier(inner, inner)));
  Tensor y = to_model("output", h) + to_model("skip", x);
  y = y * sigmoid(to_model("film_scale", z)) + to_model("film_shift", z);
  const Tensor scale = trace.parameter("scale", {}, Initializer::ones());
  y = nn::layer_norm(trace, "output_norm", y) * cast(scale, y.dtype());
  if (sizes.colour) y = coloured(y, inputs);
  return {y, scale};
}

Tensor row_rms(Tensor y) {
  const Fp32Scope island(y.builder());
  return reshape(sqrt(maximum(mean_square(y), kLeastSquare)), {y.dim(0)});
}

Tensor calibrate(Tensor y, Tensor target) {
  const Fp32Scope island(y.builder());
  const Tensor factor = rsqrt(maximum(mean_square(y), kLeastSquare)) * target;
  return cast(y * cast(factor, y.dtype()), y.dtype());
}

}  // namespace fullbore::latentwire
