#include "fullbore/optim/gradient_statistics.h"

namespace fullbore {
namespace {

constexpr double kNoiseDecay = 0.99;

Tensor squared_norm(std::span<const Tensor> tensors) {
  Tensor total;
  for (Tensor tensor : tensors) {
    std::vector<int64_t> axes;
    for (int axis = 0; axis < tensor.rank(); ++axis) axes.push_back(axis);
    const Tensor squares = reduce_sum(tensor * tensor, axes);
    total = total.valid() ? total + squares : squares;
  }
  return total;
}

}  // namespace

Tensor global_norm(std::span<const Tensor> tensors) { return sqrt(squared_norm(tensors)); }

Tensor gradient_noise_scale(Trace& trace, std::span<const Tensor> first_half,
                            std::span<const Tensor> second_half, std::span<const Tensor> whole,
                            int64_t batch_size,
                            const std::function<void(Tensor state, Tensor next)>& keep) {
  const Tensor half = (squared_norm(first_half) + squared_norm(second_half)) * 0.5;
  const Tensor all = squared_norm(whole);
  const auto averaged = [&](const char* name, Tensor estimate) {
    const Tensor average = trace.state(name, Role::control, {DType::f32, {}}, Initializer::zeros());
    const Tensor next = average * kNoiseDecay + estimate * (1 - kNoiseDecay);
    keep(average, next);
    return next;
  };
  const Tensor squared = averaged("noise.squared_norm", all * 2.0 - half);
  const Tensor noise = averaged("noise.trace", (half - all) * static_cast<double>(batch_size));
  return noise / squared;
}

}  // namespace fullbore
